//! The variables and functions of conditions.

use super::*;

#[test]
fn numbers_of_all_types_compare_by_value() {
    for when in [
        "distance <= 3000",
        "distance <= 3000.0",
        "distance <= 3000u",
        "distance <= 0xBB8",
        "distance == 3000",
        "3e3 >= distance",
        "distance * 1.5 == 4500",
        "distance / 1000 == 3",
        "distance / 2000 > 1",
        "distance + 1 > 3000.5",
        "-distance < 0",
        "distance - 1 in [2999]",
        "ceil(distance / 2000) == 2",
        "floor(distance / 2000) == 1",
        "size(tags) * 2 == 0.0",
    ] {
        assert!(matches(when, &delivery_over(3000)), "{when}");
    }
    for when in [
        "distance < 3000",
        "distance < 3000.0",
        "distance != 3000.0",
        "distance > 3e3",
    ] {
        assert!(!matches(when, &delivery_over(3000)), "{when}");
    }
}

#[test]
fn conditions_can_use_all_members_of_a_delivery() {
    let mut delivery = delivery_over(3000);
    delivery.pickup.details.weight = Some(1500);
    delivery.dropoff.details.weight = Some(500);
    delivery.dropoff.has_time_slot = true;
    delivery.dropoff.details.tags = vec!["fragile".into()];
    let packages = [("XL", 2), ("S", 1)].map(|(kind, quantity)| Package {
        kind: kind.into(),
        quantity,
    });
    delivery.dropoff.details.packages = packages.to_vec();
    for when in [
        "weight == 2000",
        "duration == 750",
        "volume == 17",
        "count(packages, \"XL\") == 2 && packages[\"S\"] == 1 && packages.S == 1",
        "\"XL\" in packages",
        "time_slot",
        "\"fragile\" in tags && tags[0] == \"fragile\"",
        "store == \"Demo shop\"",
        "dropoff.address.postal_code.startsWith(\"75\")",
        "dropoff.address.postal_code in [\"75001\", \"75002\"]",
        "in_zone(dropoff.address, \"centre\")",
        "hours_until(dropoff) == 9.5",
        "slot_length(pickup) == 1.5",
        "dropoff.after.getHours() == 20 && dropoff.before.getMinutes() + 0.5 == 30.5",
        "dropoff.before - dropoff.after > duration(\"1h\")",
        "dropoff.before > timestamp(\"2025-04-02T19:29:59Z\")",
        "distance > 1 ? time_slot : false",
        "!(distance < 3000 || weight < 1)",
        "pickup.address == dropoff.address && pickup != dropoff",
    ] {
        assert!(matches(when, &delivery), "{when}");
    }
    assert!(matches("count(packages, \"XL\") == 0", &delivery_over(1)));
}

#[test]
fn a_missing_value_prevents_a_match_and_is_named_in_the_reason() {
    for (when, reason) in [
        (
            "weight > 5",
            "can't evaluate weight > 5: no weight is given",
        ),
        (
            "dropoff.address.locality == \"Paris\"",
            "can't evaluate dropoff.address.locality == \"Paris\": no locality is given",
        ),
        (
            "weight > 5 && distance > 5000",
            "weight > 5 && distance > 5000 is false",
        ),
    ] {
        let calculation =
            list("first", &rule(when, "1")).calculate(&delivery_over(3000), "", &now());
        assert_eq!(calculation.price, None);
        assert_eq!(calculation.outcomes[0].reason, reason);
    }
    let steps = rule(
        "true",
        "{ step = \"weight\", amount = 360, every = 40000, above = 40000 }",
    );
    let calculation = list("first", &steps).calculate(&delivery_over(1), "", &now());
    assert_eq!(
        calculation.outcomes[0].reason,
        "true is true, but no weight is given"
    );
}
