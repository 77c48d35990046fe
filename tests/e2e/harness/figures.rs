//! Measured figures and what they should be.

/// A measured figure, with the name that failures give it.
pub(crate) struct Figure<'a> {
    pub(crate) name: &'a str,
    pub(crate) is: f64,
}

impl<'a> Figure<'a> {
    pub(crate) fn new(name: &'a str, is: f64) -> Self {
        Self { name, is }
    }

    /// Is `wanted`, give or take this part of it.
    #[track_caller]
    pub(crate) fn is_about(&self, wanted: f64, part: f64) {
        self.is_near(wanted, wanted * part);
    }

    /// Is `wanted`, give or take `slack`.
    #[track_caller]
    pub(crate) fn is_near(&self, wanted: f64, slack: f64) {
        let Figure { name, is } = self;
        assert!((is - wanted).abs() <= slack, "{name} is {is:.4}, wanted {wanted:.4} ± {slack:.4}");
    }
}

/// A part of a whole; of nothing it is nothing.
pub(crate) fn fraction(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
