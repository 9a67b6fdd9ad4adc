//! The client against services that answer well, badly and not at all.

use super::{
    fixture::{Reply, Service},
    *,
};

/// For tests that do not wait for it.
const LIMITS: Limits = Limits {
    deadline: Duration::from_mins(1),
    in_flight: 2,
    largest_answer: 100,
};

fn client(limits: Limits) -> Client {
    Client::new(limits).unwrap()
}

fn text(status: u16, text: &str) -> Reply {
    Reply::Text(status, text.to_owned())
}

#[tokio::test]
async fn an_answer_about_the_question_is_an_answer() {
    let service = Service::start(|target, _| match target {
        "/a?q=1" => text(200, "good"),
        _ => text(400, "bad"),
    })
    .await;
    let client = client(LIMITS);

    for (path, status, body) in [
        ("/a?q=1", StatusCode::OK, "good"),
        ("/b", StatusCode::BAD_REQUEST, "bad"),
    ] {
        let answer = client.get(&service.url.join(path).unwrap()).await.unwrap();
        assert_eq!((answer.status, &answer.body[..]), (status, body.as_bytes()));
    }
    assert_eq!(service.targets(), ["/a?q=1", "/b"]);
}

#[tokio::test]
async fn whatever_else_a_service_answers_is_an_error() {
    let broken = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf".to_vec();
    let announced = b"HTTP/1.1 200 OK\r\ncontent-length: 101\r\n\r\n".to_vec();
    let service = Service::start(move |target, _| match target {
        "/moved" => text(302, ""),
        "/failed" => text(500, ""),
        "/late" => text(408, ""),
        "/broken" => Reply::Bytes(broken.clone()),
        "/announced" => Reply::Bytes(announced.clone()),
        "/endless" => Reply::Endless,
        "/garbage" => Reply::Bytes(b"SSH-2.0-OpenSSH_9.6\r\n\r\n".to_vec()),
        _ => Reply::Nothing,
    })
    .await;

    for (path, expected) in [
        ("/moved", "answered with 302 Found"),
        ("/failed", "answered with 500 Internal Server Error"),
        ("/late", "answered with 408 Request Timeout"),
        ("/broken", "the answer breaks off"),
        ("/announced", "the answer is longer than 100 bytes"),
        ("/endless", "the answer is longer than 100 bytes"),
        ("/garbage", "no answer"),
        ("/nothing", "no answer"),
    ] {
        let url = service.url.join(path).unwrap();
        let error = client(LIMITS).get(&url).await.unwrap_err();
        assert_eq!(error.to_string(), expected, "{path}");
    }
}

#[tokio::test]
async fn a_connection_that_is_closed_under_a_question_is_tried_once_more() {
    let service = Service::start(|_, before| match before {
        0 => Reply::Nothing,
        _ => text(200, "here"),
    })
    .await;

    let answer = client(LIMITS).get(&service.url).await.unwrap();

    assert_eq!(&answer.body[..], b"here");
    assert_eq!(service.targets().len(), 2);
}

#[tokio::test]
async fn a_service_that_says_nothing_costs_no_more_than_the_deadline_and_no_turn_for_ever() {
    let service = Service::start(|_, before| match before {
        0 => Reply::Silence,
        _ => text(200, ""),
    })
    .await;
    let client = client(Limits {
        deadline: Duration::from_secs(3),
        in_flight: 1,
        ..LIMITS
    });

    let (first, second) = tokio::join!(client.get(&service.url), async {
        // After the first has the only turn.
        tokio::task::yield_now().await;
        client.get(&service.url).await
    });

    assert!(matches!(first, Err(Error::Timeout(_))), "{first:?}");
    assert!(matches!(second, Err(Error::Busy)), "{second:?}");
    assert!(client.get(&service.url).await.is_ok());
}

#[tokio::test]
async fn no_more_calls_are_under_way_than_may_be() {
    let service = Service::start(|_, _| Reply::Silence).await;
    let client = client(Limits {
        deadline: Duration::from_secs(1),
        ..LIMITS
    });

    let results = futures_util::future::join_all((0..4).map(|_| client.get(&service.url))).await;

    let busy = |result: &Result<_, _>| matches!(result, Err(Error::Busy));
    assert!(results.iter().all(Result::is_err));
    assert!(
        results.iter().filter(|result| busy(result)).count() >= 2,
        "{results:?}"
    );
    assert!(service.targets().len() <= 2);
}

#[tokio::test]
async fn a_service_that_fails_again_and_again_is_left_alone() {
    let service = Service::start(|_, _| text(500, "")).await;
    let client = client(LIMITS);

    for _ in 0..10 {
        client.get(&service.url).await.unwrap_err();
    }

    assert_eq!(service.targets().len(), 5);
    let error = client.get(&service.url).await.unwrap_err();
    assert!(matches!(error, Error::Resting(_)), "{error}");
}

#[tokio::test]
async fn a_service_that_asks_for_time_is_given_it() {
    let wait = b"HTTP/1.1 429 -\r\nretry-after: 60\r\ncontent-length: 0\r\n\r\n";
    let service = Service::start(move |_, _| Reply::Bytes(wait.to_vec())).await;
    let client = client(LIMITS);

    let asked = client.get(&service.url).await.unwrap_err();
    let error = client.get(&service.url).await.unwrap_err();

    assert_eq!(asked.retry_after(), Some(Duration::from_mins(1)));
    let rest = error.retry_after().unwrap();
    assert!(rest > Duration::from_secs(30) && rest <= Duration::from_mins(1));
    assert_eq!(service.targets().len(), 1);
}

#[tokio::test]
async fn what_was_asked_is_not_in_the_error() {
    let unreachable: Url = "http://127.0.0.1:1/search?q=24+Rue+de+la+Paix"
        .parse()
        .unwrap();

    let error = client(LIMITS).get(&unreachable).await.unwrap_err();

    assert!(!format!("{error:?}").contains("Paix"), "{error:?}");
}

#[test]
fn a_service_has_seconds_and_not_forever() {
    assert_eq!(parse_deadline("500ms"), Ok(Duration::from_millis(500)));
    for wrong in ["", "0s", "-1s", "2", "21s", "1 century"] {
        assert!(parse_deadline(wrong).is_err(), "{wrong}");
    }
}
