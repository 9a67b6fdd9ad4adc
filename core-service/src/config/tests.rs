use super::*;

#[test]
fn a_retention_has_a_minimum_and_a_maximum() {
    for (parse, least) in [
        (days as fn(&str) -> Result<Duration, String>, 1),
        (delivery_retention, 7),
    ] {
        for accepted in [least, 3650] {
            let parsed = parse(&format!("{accepted}d"));
            assert_eq!(parsed, Ok(DAY * accepted));
        }
        let shorter = parse(&format!("{}h", 24 * least - 1)).unwrap_err();
        assert_eq!(shorter, format!("shorter than the minimum of {least}d"));
        parse("3651d").unwrap_err();
    }
}

#[test]
fn each_flag_sets_its_own_retention() {
    let config: Config = command_line::settings(&[
        "--database-url=none",
        "--event-retention=2d",
        "--notification-retention=3d",
        "--webhook-disable-after=4d",
        "--delivery-retention=8d",
        "--delivery-removal=9d",
        "--audit-retention=10d",
    ]);

    assert_eq!(config.deliveries.event_retention, DAY * 2);
    assert_eq!(config.webhooks.notification_retention, DAY * 3);
    let disable_after = SignedDuration::from_hours(4 * 24);
    assert_eq!(config.webhooks.disable_after(), disable_after);
    assert_eq!(config.deliveries.delivery_retention, Some(DAY * 8));
    assert_eq!(config.platform.audit_retention, DAY * 10);
    assert_eq!(config.deliveries.delivery_removal, Some(DAY * 9));
    let default = Config::default().deliveries;
    assert_eq!(
        (default.delivery_retention, default.delivery_removal),
        (None, None)
    );
}

#[test]
fn deliveries_are_removed_only_after_they_are_erased_and_their_events_are_deleted() {
    for (erasing, events, removal, is_accepted) in [
        (None, 9, None, true),
        (Some(8), 9, None, true),
        (None, 7, Some(8), false),
        (Some(8), 7, Some(8), false),
        (Some(7), 8, Some(8), false),
        (Some(8), 8, Some(9), true),
    ] {
        let days = |days: Option<u32>| days.map(|days| DAY * days);
        let config = DeliveryConfig {
            delivery_retention: days(erasing),
            event_retention: DAY * events,
            delivery_removal: days(removal),
            ..DeliveryConfig::default()
        };
        assert_eq!(
            config.check().is_ok(),
            is_accepted,
            "{erasing:?} {events} {removal:?}"
        );
    }
}
