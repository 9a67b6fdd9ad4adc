//! Why a program can't go on, for whoever started it.

/// The error and its causes, each said once: some messages tell their cause themselves.
pub fn sentence(error: &anyhow::Error) -> String {
    let mut sentence = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !sentence.contains(&cause) {
            sentence = format!("{sentence}: {cause}");
        }
    }
    sentence
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn a_cause_is_said_once() {
        let error = anyhow!("refused")
            .context("cannot connect: refused")
            .context("cannot start");

        assert_eq!(sentence(&error), "cannot start: cannot connect: refused");
    }
}
