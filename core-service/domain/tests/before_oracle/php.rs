//! PHP's answers to many expressions, from one process.

use crate::expression::Expression;
use std::io::Write;
use std::process::{Command, Stdio};

/// What PHP makes of an expression.
#[derive(Debug)]
pub(crate) struct Answer {
    /// `None` if it refuses.
    pub(crate) seconds: Option<i64>,
    /// The answers with a time once more at the end.
    pub(crate) repeated: Vec<i64>,
    /// It accepts a date that the calendar lacks.
    pub(crate) date_is_invalid: bool,
}

/// Reads lines of a Unix time, a zone, an expression and its other forms; writes lines of answers.
const SCRIPT: &str = r#"
while (($line = fgets(STDIN)) !== false) {
    $texts = explode("\x1f", rtrim($line, "\n"));
    $now = (int) array_shift($texts);
    date_default_timezone_set(array_shift($texts));
    $invalid = in_array("The parsed date was invalid", date_parse($texts[0])["warnings"]);
    $answers = array_map(fn($text) => json_encode(strtotime($text, $now)), $texts);
    echo (int) $invalid, " ", implode(" ", $answers), "\n";
}
"#;

/// PHP's answers in the order of the expressions, or `None` if there is no `php` to ask.
pub(crate) fn answers(expressions: &[Expression]) -> Option<Vec<Answer>> {
    let mut php = Command::new("php")
        .args(["-d", "error_reporting=0", "-r", SCRIPT])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .ok()?;
    let questions: String = expressions.iter().map(question).collect();
    let mut stdin = php.stdin.take().expect("it is piped");
    let writer = std::thread::spawn(move || stdin.write_all(questions.as_bytes()));
    let output = php
        .wait_with_output()
        .expect("php ends when its input does");
    writer
        .join()
        .expect("writing does not panic")
        .expect("php reads all of its input");
    assert!(output.status.success(), "php failed: {}", output.status);
    let answers = String::from_utf8(output.stdout).expect("the script writes ASCII");
    Some(answers.lines().map(answer).collect())
}

fn question(expression: &Expression) -> String {
    let now = &expression.now;
    let zone = now
        .time_zone()
        .iana_name()
        .expect("every zone here has a name");
    let texts: Vec<&str> = std::iter::once(&expression.text)
        .chain(&expression.repeated)
        .map(String::as_str)
        .collect();
    format!(
        "{}\x1f{zone}\x1f{}\n",
        now.timestamp().as_second(),
        texts.join("\x1f")
    )
}

fn answer(line: &str) -> Answer {
    let mut words = line.split(' ');
    let mut next = || words.next().expect("the script writes two words or more");
    let (date_is_invalid, seconds) = (next() == "1", next().parse().ok());
    Answer {
        seconds,
        repeated: words.filter_map(|word| word.parse().ok()).collect(),
        date_is_invalid,
    }
}
