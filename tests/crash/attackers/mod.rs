//! Attackers, each from an address of its own, against a gateway, alone and behind `HAProxy`, a core and the
//! all-in-one: an honest client on another address is served, and every process's memory stays bounded.
//!
//! Each attack takes a second; `DELIVERY_ATTACK_SECONDS` sets another number, and `DELIVERY_ATTACKS` a word that the
//! names of the attacks have which are made.

mod attack;
mod grpc_attacks;
mod haproxy;
mod honest_client;
mod rest_attacks;
mod victim;

use std::{env, net::Ipv4Addr, time::Duration};

use self::{
    attack::{Attack, Target},
    honest_client::{Figures, Goodput},
    victim::Victim,
};
use crate::{all_processors, report};

/// Of the calls that the honest client begins in a second, in percent.
const MIN_GOODPUT: usize = 95;

/// How long the honest client is observed before and after an attack.
const TIME_BEFORE: Duration = Duration::from_millis(500);
const TIME_AFTER: Duration = Duration::from_secs(1);

/// The most that an attack may add to the memory of a process.
const MAX_GROWTH_MIB: u64 = 250;

#[expect(clippy::disallowed_methods, reason = "tests have no flags")]
fn attack_time() -> Duration {
    let seconds = env::var("DELIVERY_ATTACK_SECONDS").map_or(1, |text| text.parse().unwrap());
    assert!(seconds <= 3_000, "longer than an access token is valid");
    Duration::from_secs(seconds)
}

/// Whether an attack is to be run: all, or those with a word in their name.
#[expect(clippy::disallowed_methods, reason = "tests have no flags")]
fn is_chosen(attack: &Attack) -> bool {
    env::var("DELIVERY_ATTACKS").is_ok_and(|word| attack.name.contains(&word))
        || env::var_os("DELIVERY_ATTACKS").is_none()
}

/// Runs attacks on one listener of a victim, one after the other, and prints a line of figures for each.
async fn attack(
    victim: &mut Victim,
    listener: &str,
    target: fn(&Victim) -> &Target,
    attacks: &[Attack],
) -> Vec<String> {
    let mut failures = Vec::new();
    // None finds the limits of its address used up by the attack before. The honest client has the first one.
    for (attack, number) in attacks.iter().filter(|attack| is_chosen(attack)).zip(2..) {
        let address = Ipv4Addr::new(127, 0, 0, number);
        victim.renew_tokens().await;
        let before = victim.honest_client.serve(TIME_BEFORE).await;
        let memory_before = victim.memory();
        victim.reset_peaks();
        let running = attack.start(address, target(victim));
        let during = victim.honest_client.serve(attack_time()).await;
        let connections = running.connections();
        drop(running);
        let after = victim.honest_client.serve(TIME_AFTER).await;

        let peaks = victim.peaks();
        let name = format!("{} | {listener} | {}", victim.name, attack.name);
        report(&format!(
            "{name} | {connections} | {before} | {during} | {after} | {peaks}"
        ));
        if !connections.lasted() {
            failures.push(format!("{name}: the attack did not last: {connections}"));
        }
        for (period, figures, min_percent) in [
            ("before", &before, 100),
            ("during", &during, MIN_GOODPUT),
            ("after", &after, MIN_GOODPUT),
        ] {
            let Figures {
                seconds,
                failures: reasons,
                ..
            } = figures;
            for (second, Goodput { calls, served }) in seconds {
                // One may be lost in any second, of which 25 calls are a large part.
                if (served + 1) * 100 < calls * min_percent {
                    failures.push(format!(
                        "{name}, second {second} {period}: {served} of {calls} calls: {reasons:?}"
                    ));
                }
            }
        }
        for (process, grown) in peaks.above(&memory_before) {
            if grown > MAX_GROWTH_MIB {
                failures.push(format!("{name}: {process} took {grown} MiB more"));
            }
        }
    }
    failures
}

async fn assert_resists(victim: &mut Victim) {
    let _processors = all_processors().await;
    let mut failures = attack(victim, "REST", |victim| &victim.rest, &rest_attacks::all()).await;
    failures.extend(attack(victim, "gRPC", |victim| &victim.grpc, &grpc_attacks::all()).await);
    assert!(failures.is_empty(), "{failures:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_attack_on_a_gateway_or_its_core_stops_no_honest_client() {
    let Some(mut victim) = Victim::cluster().await else {
        return;
    };
    assert_resists(&mut victim).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_attack_on_the_all_in_one_stops_no_honest_client() {
    let mut victim = Victim::all_in_one().await;
    assert_resists(&mut victim).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_attack_on_a_gateway_behind_haproxy_stops_no_honest_client() {
    let Some(mut victim) = Victim::behind_haproxy().await else {
        return;
    };
    let _processors = all_processors().await;
    let failures = attack(
        &mut victim,
        "REST",
        |victim| &victim.rest,
        &rest_attacks::all(),
    )
    .await;
    assert!(failures.is_empty(), "{failures:#?}");
}
