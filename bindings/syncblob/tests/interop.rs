#![cfg(any(feature = "ndarray", feature = "serde"))]

use syncblob::{Blob, ErrorKind, Part};

#[cfg(feature = "ndarray")]
#[test]
fn views_are_the_blobs_own_elements() {
    let mut blob = Blob::<f32>::from_fn([2, 3], |i| i as f32).unwrap();
    assert_eq!(
        blob.view(Part::Data).unwrap(),
        ndarray::array![[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]].into_dyn()
    );
    assert_eq!(blob.view(Part::Data).unwrap().as_ptr(), blob.data().unwrap().as_ptr());
    blob.view_mut(Part::Data).unwrap()[[1, 0]] = 9.0;
    blob.view_mut(Part::Diff).unwrap().fill(2.0);
    assert_eq!(
        (blob.at(Part::Data, [1, 0]).unwrap(), blob.view(Part::Diff).unwrap().sum()),
        (9.0, 12.0)
    );
    let shared = blob.handle(Part::Data).unwrap();
    assert_eq!(blob.view_mut(Part::Data).unwrap_err().kind(), ErrorKind::Shared);
    drop(shared);
    assert_eq!(Blob::<f32>::full((), 4.0).unwrap().view(Part::Data).unwrap()[[]], 4.0);
    assert_eq!(Blob::<f32>::zeros([3, 0]).unwrap().view(Part::Data).unwrap().shape(), [3, 0]);
    let mut unshaped = Blob::<f32>::new().unwrap();
    assert_eq!(unshaped.view(Part::Data).unwrap().shape(), [0]);
    assert_eq!(unshaped.view_mut(Part::Diff).unwrap().shape(), [0]);
    let huge = Blob::<f32>::zeros([0, 1_i64 << 40, 1 << 40]).unwrap();
    assert_eq!(huge.view(Part::Data).unwrap_err().kind(), ErrorKind::SizeOverflow);
}

#[cfg(feature = "ndarray")]
#[test]
fn an_array_in_row_major_order_is_used_in_place() {
    use ndarray::{s, Array2};
    let array = Array2::from_shape_fn((3, 4), |(i, j)| (i * 10 + j) as f32);
    let start = array.as_ptr();
    let blob = Blob::from_array(array.clone()).unwrap();
    assert_eq!(blob.to_array().unwrap(), array.clone().into_dyn());
    let blob = Blob::from_array(array).unwrap();
    assert_eq!((blob.data().unwrap().as_ptr(), blob.shape()), (start, &[3, 4][..]));
    let array = blob.to_array().unwrap().into_dimensionality::<ndarray::Ix2>().unwrap();
    let transposed = Blob::from_array(array.clone().reversed_axes()).unwrap();
    assert_eq!(transposed.view(Part::Data).unwrap(), array.t().into_dyn());
    for part in [array.clone().slice_move(s![1.., ..]), array.clone().slice_move(s![.., 1..3])] {
        assert_eq!(
            Blob::from_array(part.clone()).unwrap().view(Part::Data).unwrap(),
            part.into_dyn()
        );
    }
}

#[cfg(feature = "serde")]
#[test]
fn blobs_go_through_serde_with_their_shape() {
    let blob = Blob::<f32>::from_slice([2, 2], &[1.0, 2.5, -3.0, 0.0]).unwrap();
    let text = serde_json::to_string(&blob).unwrap();
    assert_eq!(text, r#"{"shape":[2,2],"data":[1.0,2.5,-3.0,0.0]}"#);
    let again: Blob<f32> = serde_json::from_str(&text).unwrap();
    assert_eq!((again.shape(), again.data().unwrap()), (blob.shape(), blob.data().unwrap()));
    let wrong = serde_json::from_str::<Blob<f32>>(r#"{"shape":[1000000000,1000],"data":[1.0]}"#);
    assert!(wrong.unwrap_err().to_string().contains("1 values"));
    let beyond = r#"{"shape":[0,18446744073709551615],"data":[]}"#;
    assert!(serde_json::from_str::<Blob<f32>>(beyond).is_err());
    let unknown = r#"{"shape":[1],"data":[1.0],"diff":[2.0]}"#;
    let error = serde_json::from_str::<Blob<f32>>(unknown).unwrap_err();
    assert!(error.to_string().contains("diff"), "{error}");
    assert_eq!(serde_json::to_string(&syncblob::BlobAny::from(blob)).unwrap(), text);
    let empty = serde_json::to_string(&Blob::<i32>::new().unwrap()).unwrap();
    assert_eq!(empty, r#"{"shape":[0],"data":[]}"#);
    assert!(serde_json::from_str::<Blob<i32>>(&empty).is_ok());
}

#[cfg(feature = "ndarray")]
#[test]
fn into_array_returns_the_array_without_a_copy() {
    let array = ndarray::array![[1.0_f32, 2.0], [3.0, 4.0]];
    let start = array.as_ptr();
    let mut blob = Blob::from_array(array.clone()).unwrap();
    let start_of_copy = blob.data().unwrap().as_ptr();
    assert_ne!(start_of_copy, start);
    blob.reshape([1, 3]).unwrap();
    let again = blob.into_array().unwrap();
    assert_eq!((again.as_ptr(), again.shape()), (start_of_copy, &[1, 3][..]));
    let huge = Blob::<f32>::zeros([0, 1_i64 << 40, 1 << 40]).unwrap();
    assert_eq!(huge.into_array().unwrap_err().kind(), ErrorKind::SizeOverflow);
    assert_eq!(Blob::<f32>::new().unwrap().into_array().unwrap().shape(), [0]);
}

#[cfg(feature = "serde")]
#[test]
fn values_that_json_has_no_number_for_are_words() {
    let values = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 1.5, f64::MAX];
    let blob = Blob::<f64>::from_slice([6], &values).unwrap();
    let text = serde_json::to_string(&blob).unwrap();
    assert!(text.contains(r#"["NaN","inf","-inf",-0.0,1.5,"#), "{text}");
    let again: Blob<f64> = serde_json::from_str(&text).unwrap();
    let bits =
        |blob: &Blob<f64>| blob.data().unwrap().iter().map(|v| v.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(&again), bits(&blob));
    let single: Blob<f32> =
        serde_json::from_str(&text.replace("1.7976931348623157e308", "1")).unwrap();
    assert!(single.data().unwrap()[0].is_nan());
    for wrong in [r#""nan?""#, "null", "true", r#""1.5""#] {
        let text = format!(r#"{{"shape":[1],"data":[{wrong}]}}"#);
        assert!(serde_json::from_str::<Blob<f32>>(&text).is_err(), "{wrong}");
    }
}

#[cfg(feature = "serde")]
#[test]
fn names_statistics_and_limits_go_through_serde() {
    use syncblob::{Context, Dtype, Format, Limits};
    let json = |value: serde_json::Result<String>| value.unwrap();
    assert_eq!(json(serde_json::to_string(&Dtype::Bf16)), r#""bf16""#);
    assert_eq!(json(serde_json::to_string(&Format::Caffemodel)), r#""caffemodel""#);
    let stats = serde_json::to_value(Context::host().stats().unwrap()).unwrap();
    assert!(stats["host_bytes"].is_u64());
    let limits: Limits = serde_json::from_str(r#"{"max_layers": 5}"#).unwrap();
    assert_eq!(limits, Limits::new().max_layers(5));
    assert!(serde_json::from_str::<Limits>(r#"{"max_layer": 5}"#).is_err());
}

#[cfg(feature = "serde")]
#[test]
fn errors_for_invalid_elements_use_the_terms_of_the_format() {
    let parsed = |data: &str| {
        let text = format!(r#"{{"shape":[1],"data":[{data}]}}"#);
        serde_json::from_str::<Blob<f32>>(&text).map(|blob| blob.data().unwrap()[0])
    };
    for (data, part) in [
        ("null", "null, expected a number"),
        ("[]", "sequence, expected a number"),
        ("true", "`true`, expected a number"),
        (r#""nan""#, r#"invalid value: string "nan", expected a number, "NaN", "inf" or "-inf""#),
    ] {
        let error = parsed(data).unwrap_err().to_string();
        assert!(error.contains(part) && !error.contains("Readable"), "{error}");
    }
    for (data, value) in [("1", 1.0), ("-2", -2.0), ("0.5", 0.5), (r#""-inf""#, f32::NEG_INFINITY)]
    {
        assert_eq!(parsed(data).unwrap(), value);
    }
    assert!(parsed(r#""NaN""#).unwrap().is_nan());
}

#[cfg(all(feature = "serde", feature = "half"))]
#[test]
fn half_precision_goes_through_serde_by_its_bits() {
    use syncblob::half::{bf16, f16};
    let text = serde_json::to_string(&Blob::full([1], f16::from_f32(1.5)).unwrap()).unwrap();
    assert_eq!(text, r#"{"shape":[1],"data":[15872]}"#);
    let again: Blob<f16> = serde_json::from_str(&text).unwrap();
    assert_eq!(again.data().unwrap(), [f16::from_f32(1.5)]);
    let text = serde_json::to_string(&Blob::full([1], bf16::NAN).unwrap()).unwrap();
    assert_eq!(text, r#"{"shape":[1],"data":[32704]}"#);
}
