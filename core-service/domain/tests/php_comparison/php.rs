//! PHP's results for many expressions, from one process.

use crate::expression::Expression;
use std::io::Write;
use std::process::{Command, Stdio};

/// PHP's result for an expression.
#[derive(Debug)]
pub(crate) struct PhpResult {
    /// A Unix time, or `None` if PHP rejects the expression.
    pub(crate) seconds: Option<i64>,
    /// The results for the expression's variants with a repeated time.
    pub(crate) repeated: Vec<i64>,
    /// The results for the variants with fewer days.
    pub(crate) with_fewer_days: Vec<i64>,
    pub(crate) local_time: LocalTime,
    /// The expression has an offset from UTC.
    pub(crate) has_offset: bool,
    /// PHP ignores a second zone.
    pub(crate) ignores_zone: bool,
}

/// The date and the time of day in an expression.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum LocalTime {
    /// Neither of them.
    Absent,
    /// A date that does not exist in the calendar.
    Invalid,
    Given,
}

/// Reads lines of a Unix time, a zone, an expression and its variants; writes lines of results.
const SCRIPT: &str = r#"
while (($line = fgets(STDIN)) !== false) {
    $texts = explode("\x1f", rtrim($line, "\n"));
    $now = (int) array_shift($texts);
    date_default_timezone_set(array_shift($texts));
    $parsed = date_parse($texts[0]);
    $ignored = in_array("Double timezone specification", $parsed["warnings"]);
    $local = [$parsed["year"], $parsed["month"], $parsed["day"], $parsed["hour"]];
    $invalid = in_array("The parsed date was invalid", $parsed["warnings"]);
    $time = $local === [false, false, false, false] ? "absent" : ($invalid ? "invalid" : "given");
    $offset = ($parsed["zone_type"] ?? 0) === 1;
    $results = array_map(fn($text) => json_encode(strtotime($text, $now)), $texts);
    echo $time, " ", (int) $offset, " ", (int) $ignored, " ", implode(" ", $results), "\n";
}
"#;

/// PHP's results in the order of the expressions, or `None` if `php` is not installed.
pub(crate) fn results(expressions: &[Expression]) -> Option<Vec<PhpResult>> {
    let mut php = Command::new("php")
        .args(["-d", "error_reporting=0", "-r", SCRIPT])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .ok()?;
    let input: String = expressions.iter().map(input_line).collect();
    let mut stdin = php.stdin.take().expect("stdin is piped");
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = php
        .wait_with_output()
        .expect("php exits at the end of its input");
    writer
        .join()
        .expect("the writer does not panic")
        .expect("php reads all of its input");
    assert!(output.status.success(), "php failed: {}", output.status);
    let output = String::from_utf8(output.stdout).expect("the script writes ASCII");
    let lines = expressions.iter().zip(output.lines());
    Some(
        lines
            .map(|(expression, line)| parse_line(expression, line))
            .collect(),
    )
}

fn input_line(expression: &Expression) -> String {
    let now = &expression.now;
    let zone = now
        .time_zone()
        .iana_name()
        .expect("all test zones have names");
    let texts: Vec<&str> = std::iter::once(&expression.in_php)
        .chain(&expression.repeated)
        .chain(&expression.with_fewer_days)
        .map(String::as_str)
        .collect();
    format!(
        "{}\x1f{zone}\x1f{}\n",
        now.timestamp().as_second(),
        texts.join("\x1f")
    )
}

fn parse_line(expression: &Expression, line: &str) -> PhpResult {
    let mut words = line.split(' ');
    let mut next = || words.next().expect("the script writes at least four words");
    let local_time = match next() {
        "absent" => LocalTime::Absent,
        "invalid" => LocalTime::Invalid,
        _ => LocalTime::Given,
    };
    let (has_offset, ignores_zone) = (next() == "1", next() == "1");
    let seconds = next().parse().ok();
    let repeated = words.by_ref().take(expression.repeated.len());
    let repeated = repeated.filter_map(|word| word.parse().ok()).collect();
    PhpResult {
        seconds,
        repeated,
        with_fewer_days: words.filter_map(|word| word.parse().ok()).collect(),
        local_time,
        has_offset,
        ignores_zone,
    }
}
