//! Parses whole numbers in flags and environment variables.

use std::{fmt::Display, str::FromStr};

/// A parser of numbers from a minimum on; its error has an example.
pub fn at_least<T>(
    minimum: T,
    example: T,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static
where
    T: Copy + Display + FromStr + PartialOrd + Send + Sync + 'static,
{
    parser(
        move |number| *number >= minimum,
        format!("not a whole number of {minimum} or more, such as {example}"),
    )
}

/// A parser of numbers of a range; its error has an example.
pub fn within<T>(
    minimum: T,
    maximum: T,
    example: T,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static
where
    T: Copy + Display + FromStr + PartialOrd + Send + Sync + 'static,
{
    parser(
        move |number| (minimum..=maximum).contains(number),
        format!("not a whole number from {minimum} to {maximum}, such as {example}"),
    )
}

fn parser<T: FromStr>(
    is_valid: impl Fn(&T) -> bool + Clone + Send + Sync + 'static,
    error: String,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static {
    move |text| {
        let number = text.trim().parse().ok().filter(&is_valid);
        number.ok_or_else(|| error.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_within_its_range() {
        let at_least_one = at_least(1_u32, 32);
        let port = within(1_u16, 65_535, 25);

        assert_eq!((at_least_one("7"), port("65535")), (Ok(7), Ok(65_535)));
        for wrong in ["", "much", "0", "-1", "1.5", "1e3", "70000000000"] {
            assert_eq!(
                at_least_one(wrong),
                Err("not a whole number of 1 or more, such as 32".to_owned()),
                "{wrong}"
            );
            assert_eq!(
                port(wrong),
                Err("not a whole number from 1 to 65535, such as 25".to_owned()),
                "{wrong}"
            );
        }
    }
}
