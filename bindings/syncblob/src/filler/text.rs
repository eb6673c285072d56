//! Conversions of fillers to and from text, in the form of a net's text file.

use std::fmt;
use std::str::FromStr;

use syncblob_sys as sys;

use super::{defaults, to_sparse, Filler, Variance};
use crate::ffi::static_text;
use crate::{Error, ErrorKind, Result};

/// Writes the fields of a `FillerParameter` as in a net's text file: `type: "xavier" variance_norm:
/// AVERAGE`.
impl fmt::Display for Filler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "type: \"{}\"", self.type_name())?;
        match self {
            Self::Constant { value } => write!(f, " value: {value}"),
            Self::Uniform { min, max } => write!(f, " min: {min} max: {max}"),
            Self::Gaussian { mean, std, sparse } => {
                write!(f, " mean: {mean} std: {std}")?;
                sparse.map_or(Ok(()), |sparse| write!(f, " sparse: {sparse}"))
            }
            Self::Xavier { variance } | Self::Msra { variance } => {
                write!(f, " variance_norm: {}", variance.name())
            }
            Self::PositiveUnitball | Self::Bilinear => Ok(()),
        }
    }
}

/// Parses the text of `Display`, with fields in any order. Missing fields have Caffe's defaults.
///
/// ```
/// use syncblob::{Filler, Variance};
/// # fn main() -> syncblob::Result<()> {
/// let filler: Filler = "type: 'msra' variance_norm: FAN_OUT".parse()?;
/// assert_eq!(filler, Filler::Msra { variance: Variance::FanOut });
/// assert_eq!(filler.to_string().parse::<Filler>()?, filler);
/// # Ok(())
/// # }
/// ```
impl FromStr for Filler {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut raw = defaults();
        let mut rest = text.trim_start();
        while !rest.is_empty() {
            let (name, after) = rest.split_once(':').ok_or_else(|| refused(rest))?;
            let after = after.trim_start();
            let (value, left) = after.split_once(char::is_whitespace).unwrap_or((after, ""));
            set(&mut raw, name.trim_end(), value)?;
            rest = left.trim_start();
        }
        Self::from_raw(&raw).ok_or_else(|| refused(text))
    }
}

fn set(raw: &mut sys::sb_filler, name: &str, value: &str) -> Result<()> {
    let number = || value.parse().map_err(|_| refused(value));
    match name {
        "type" => raw.type_ = type_of(value)?,
        "value" => raw.value = number()?,
        "min" => raw.min = number()?,
        "max" => raw.max = number()?,
        "mean" => raw.mean = number()?,
        "std" => raw.std = number()?,
        "sparse" if value == "-1" => raw.sparse = -1, // Caffe's default: not sparse
        "sparse" => raw.sparse = to_sparse(value.parse().map_err(|_| refused(value))?)?,
        "variance_norm" => {
            let known = Variance::ALL.into_iter().find(|known| known.name() == value);
            raw.variance_norm = known.ok_or_else(|| refused(value))?.code();
        }
        _ => return Err(refused(name)),
    }
    Ok(())
}

/// Parses a type name in single or double quotes.
fn type_of(value: &str) -> Result<i32> {
    let unquoted = |quote| value.strip_prefix(quote)?.strip_suffix(quote);
    let name = unquoted('"').or_else(|| unquoted('\'')).ok_or_else(|| refused(value))?;
    // SAFETY: the function takes any number and returns static text.
    let name_of = |code| unsafe { static_text(sys::sb_filler_type_name(code)) };
    let codes = sys::SB_FILLER_CONSTANT..=sys::SB_FILLER_BILINEAR;
    codes.into_iter().find(|&code| name_of(code) == name).ok_or_else(|| refused(value))
}

fn refused(part: &str) -> Error {
    Error::new(ErrorKind::InvalidArgument, format!("{part:?} is not part of a filler"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_is_not_a_filler_is_refused() {
        let wrong =
            ["xavier", "type: xavier", "type: 'xavie'", "std: a", "sparse: -2", "mean:", "n: 1"];
        for text in wrong.into_iter().chain(["variance_norm: fan_in", "sparse: 4294967295"]) {
            let refused = text.parse::<Filler>();
            assert!(refused.is_err_and(|e| e.kind() == ErrorKind::InvalidArgument), "{text}");
        }
    }

    #[test]
    fn order_and_spaces_do_not_matter() {
        let filler = Filler::Gaussian { mean: 0.5, std: 0.01, sparse: None };
        for text in [
            "std:0.01\n type : \"gaussian\"  mean:\t0.5 ",
            "type:'gaussian' mean: 0.5 std: 1e-2 sparse: -1",
        ] {
            assert_eq!(text.parse::<Filler>().unwrap(), filler);
        }
        assert_eq!("".parse::<Filler>().unwrap(), Filler::default());
    }
}
