//! Numbers as people read them.

/// `12345` → `12,345`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A round number on an axis: `100`, `10 k`, `1 M`.
pub fn short(number: u64) -> String {
    match number {
        0..1_000 => number.to_string(),
        1_000..1_000_000 => format!("{} k", number / 1_000),
        _ => format!("{} M", number / 1_000_000),
    }
}

/// Bytes in decimal units, as disks and networks count them.
pub fn bytes(number: u64) -> String {
    let value = number as f64;
    match number {
        0..1_000 => format!("{number} B"),
        1_000..1_000_000 => format!("{:.0} kB", value / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", value / 1e6),
        _ => format!("{:.2} GB", value / 1e9),
    }
}

/// A probability from 0 to 1 as a percentage; never 0 % or 100 % unless it is.
pub fn percent(probability: f32) -> String {
    let value = probability * 100.0;
    match value {
        v if v <= 0.0 => "0 %".to_owned(),
        v if v < 1.0 => "<1 %".to_owned(),
        v if v > 99.0 && v < 100.0 => ">99 %".to_owned(),
        v => format!("{v:.0} %"),
    }
}

/// A time span, two units at most.
pub fn duration(seconds: f64) -> String {
    if !seconds.is_finite() || seconds < 0.0 {
        return "–".to_owned();
    }
    let whole = seconds.round() as u64;
    match whole {
        _ if seconds < 0.9995 => format!("{:.0} ms", seconds * 1000.0),
        _ if seconds < 9.95 => format!("{seconds:.1} s"),
        0..60 => format!("{whole} s"),
        60..3600 => format!("{} min {:02} s", whole / 60, whole % 60),
        _ => format!("{} h {:02} min", whole / 3600, whole % 3600 / 60),
    }
}

/// A weight with its sign, and a minus that is as wide as the plus.
pub fn signed(value: f32) -> String {
    format!("{value:+.2}").replace('-', "−")
}

/// A measured value with about three digits.
pub fn measure(value: f64) -> String {
    let size = value.abs();
    if size >= 100.0 || (size - size.round()).abs() < 1e-9 {
        format!("{value:.0}")
    } else if size >= 10.0 {
        format!("{value:.1}")
    } else if size >= 1.0 {
        format!("{value:.2}")
    } else {
        format!("{value:.3}")
    }
}

/// Names with their numbers behind them where others are called the same: `wine`, but `wine 3` and `wine 5`.
pub fn told_apart(named: &[(u64, &str)]) -> Vec<String> {
    let alone = |name: &str| named.iter().filter(|(_, other)| *other == name).count() == 1;
    named
        .iter()
        .map(|(number, name)| {
            if alone(name) {
                (*name).to_owned()
            } else {
                format!("{name} {number}")
            }
        })
        .collect()
}

/// A value on an axis, without zeros that say nothing: 0.2, 10, 2500.
pub fn tick(value: f64) -> String {
    let rounded = (value * 1e6).round() / 1e6;
    // Minus nought is nought.
    format!("{}", rounded + 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_numbers_are_short() {
        let shown: Vec<String> = [1, 100, 1_000, 10_000, 100_000, 1_000_000]
            .into_iter()
            .map(short)
            .collect();
        assert_eq!(shown, ["1", "100", "1 k", "10 k", "100 k", "1 M"]);
    }

    #[test]
    fn weights_carry_their_sign() {
        assert_eq!(signed(0.083), "+0.08");
        assert_eq!(signed(-0.99), "−0.99");
    }

    #[test]
    fn only_equal_names_get_numbers() {
        let named = told_apart(&[(3, "wine"), (4, "oil"), (5, "wine")]);
        assert_eq!(named, ["wine 3", "oil", "wine 5"]);
    }

    #[test]
    fn ticks_carry_no_needless_zeros() {
        let shown: Vec<String> = [0.2, 0.1 + 0.5 + f64::EPSILON, 10.0, -0.0].map(tick).to_vec();
        assert_eq!(shown, ["0.2", "0.6", "10", "0"]);
    }

    #[test]
    fn thousands_are_grouped() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1_234_567), "1,234,567");
    }

    #[test]
    fn a_probability_is_never_rounded_to_certainty() {
        assert_eq!(percent(0.004), "<1 %");
        assert_eq!(percent(0.996), ">99 %");
        assert_eq!(percent(0.5), "50 %");
        assert_eq!(percent(1.0), "100 %");
    }

    #[test]
    fn time_spans_use_the_unit_that_fits() {
        assert_eq!(duration(0.0042), "4 ms");
        assert_eq!(duration(3.12), "3.1 s");
        assert_eq!(duration(59.9), "1 min 00 s");
        assert_eq!(duration(3661.0), "1 h 01 min");
        assert_eq!(duration(f64::NAN), "–");
    }
}
