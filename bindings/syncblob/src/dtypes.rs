//! The list of element types, from which this crate, the command and the Python module derive their
//! definitions. The C library's list is in `syncblob/base.h`; a test compares both lists.

/// Calls `$then!` once, with the given arguments in brackets and one row for each element type:
///
/// ```text
/// NAME = [cfg] type, CONSTANT, "name", size, "name in NumPy", "typestr in NumPy", NAME in
/// safetensors, traits of this crate that the type implements, KIND;
/// ```
///
/// Public only for the other crates of this repository; other programs must not use this macro.
#[doc(hidden)]
#[macro_export]
macro_rules! for_each_dtype {
    ($($then:tt)::+ $(, $($given:tt)*)?) => {
        $($then)::+! {
            [$($($given)*)?]
            F32 = [all()] f32, SB_DTYPE_F32, "f32", 4, "float32", "<f4", F32, [Float Readable Reduced], float;
            F64 = [all()] f64, SB_DTYPE_F64, "f64", 8, "float64", "<f8", F64, [Float Readable Reduced], float;
            I32 = [all()] i32, SB_DTYPE_I32, "i32", 4, "int32", "<i4", I32, [Readable], integer;
            U32 = [all()] u32, SB_DTYPE_U32, "u32", 4, "uint32", "<u4", U32, [Readable], integer;
            F16 = [feature = "half"] $crate::half::f16, SB_DTYPE_F16, "f16", 2, "float16", "<f2", F16, [Readable Reduced], half;
            Bf16 = [feature = "half"] $crate::half::bf16, SB_DTYPE_BF16, "bf16", 2, "bfloat16", "", BF16, [Reduced], half;
            I8 = [all()] i8, SB_DTYPE_I8, "i8", 1, "int8", "|i1", I8, [Readable], integer;
            U8 = [all()] u8, SB_DTYPE_U8, "u8", 1, "uint8", "|u1", U8, [Readable], integer;
            I64 = [all()] i64, SB_DTYPE_I64, "i64", 8, "int64", "<i8", I64, [Readable], integer;
        }
    };
}

pub(crate) use for_each_dtype;
