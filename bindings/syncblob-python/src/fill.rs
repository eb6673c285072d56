//! Converts the names and options of Caffe's fillers.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use syncblob::Dtype;
use syncblob_sys as sys;

use crate::arguments::number;
use crate::error::{refused, Failure};

const TYPES: [(&str, i32, &[&str]); 7] = [
    ("constant", sys::SB_FILLER_CONSTANT, &["value"]),
    ("uniform", sys::SB_FILLER_UNIFORM, &["min", "max"]),
    ("gaussian", sys::SB_FILLER_GAUSSIAN, &["mean", "std", "sparse"]),
    ("positive_unitball", sys::SB_FILLER_POSITIVE_UNITBALL, &[]),
    ("xavier", sys::SB_FILLER_XAVIER, &["variance_norm"]),
    ("msra", sys::SB_FILLER_MSRA, &["variance_norm"]),
    ("bilinear", sys::SB_FILLER_BILINEAR, &[]),
];

const VARIANCES: [(&str, i32); 3] = [
    ("fan_in", sys::SB_VARIANCE_FAN_IN),
    ("fan_out", sys::SB_VARIANCE_FAN_OUT),
    ("average", sys::SB_VARIANCE_AVERAGE),
];

/// Makes a filler from its name and options. Omitted options have Caffe's defaults.
pub fn filler(
    py: Python<'_>,
    name: &str,
    numbers: Option<&Bound<'_, PyDict>>,
) -> PyResult<sys::sb_filler> {
    let Some((_, code, allowed)) = TYPES.iter().find(|(known, ..)| *known == name) else {
        let known = TYPES.map(|(known, ..)| known).join(", ");
        let text = format!("unknown filler {name:?}: known are {known}");
        return Err(refused(py, "ArgumentError", &text));
    };
    let mut filler = defaults();
    filler.type_ = *code;
    for (key, value) in numbers.into_iter().flatten() {
        let key: String = key.extract()?;
        if !allowed.contains(&key.as_str()) {
            return Err(PyTypeError::new_err(format!("the filler {name} has no {key}")));
        }
        set(&mut filler, &key, &value)?;
    }
    Ok(filler)
}

fn set(filler: &mut sys::sb_filler, key: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
    match key {
        "sparse" => filler.sparse = number("sparse", value)?,
        "variance_norm" => {
            filler.variance_norm = variance(value.py(), &value.extract::<String>()?)?
        }
        _ => {
            let number = number(key, value)?;
            let member = match key {
                "value" => &mut filler.value,
                "min" => &mut filler.min,
                "max" => &mut filler.max,
                "mean" => &mut filler.mean,
                _ => &mut filler.std,
            };
            *member = number;
        }
    }
    Ok(())
}

fn variance(py: Python<'_>, name: &str) -> PyResult<i32> {
    let found = VARIANCES.iter().find(|(known, _)| *known == name.to_ascii_lowercase());
    found.map(|(_, code)| *code).ok_or_else(|| {
        let known = VARIANCES.map(|(known, _)| known).join(", ");
        refused(py, "ArgumentError", &format!("unknown variance_norm {name:?}: known are {known}"))
    })
}

/// Refuses a number that would be infinite as a float32.
pub fn check(filler: &sys::sb_filler, dtype: Dtype) -> Result<(), Failure> {
    let numbers = [filler.value, filler.min, filler.max, filler.mean, filler.std];
    let is_lost = |number: &f64| number.is_finite() && (*number as f32).is_infinite();
    match numbers.into_iter().find(is_lost) {
        Some(lost) if dtype == Dtype::F32 => {
            Err(Failure::Refused("ArgumentError", format!("{lost:e} does not fit float32")))
        }
        _ => Ok(()),
    }
}

pub fn another_seed(py: Python<'_>) -> PyResult<u64> {
    py.import("secrets")?.call_method1("randbits", (u64::BITS,))?.extract()
}

fn defaults() -> sys::sb_filler {
    let mut filler = std::mem::MaybeUninit::uninit();
    // SAFETY: `sb_filler_init` writes the whole struct.
    unsafe {
        sys::sb_filler_init(filler.as_mut_ptr(), size_of::<sys::sb_filler>());
        filler.assume_init()
    }
}
