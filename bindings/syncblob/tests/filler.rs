//! Tests that the parameters of fillers reach C.

use syncblob::{Blob, BlobAny, ErrorKind, Filler, Float, Part, Variance};

fn filled<T: Float>(shape: [usize; 4], filler: &Filler, seed: u64) -> Vec<T> {
    let mut blob = Blob::<T>::zeros(shape).unwrap();
    blob.initialize(filler, seed).unwrap();
    blob.data().unwrap().to_vec()
}

fn kind_of(shape: &[usize], filler: Filler) -> ErrorKind {
    let mut blob = Blob::<f32>::zeros(shape).unwrap();
    blob.fill(Part::Data, 7.0).unwrap();
    let kind = blob.initialize(&filler, 1).unwrap_err().kind();
    assert!(blob.data().unwrap().iter().all(|value| *value == 7.0), "{filler:?} wrote");
    kind
}

#[test]
fn numbers_are_those_of_the_c_library() {
    let at = |values: Vec<f64>| [0, 77, 299].map(|i| values[i].to_bits());
    let shape = [4, 3, 5, 5];
    let uniform = Filler::Uniform { min: -1.25, max: 3.0 };
    assert_eq!(
        at(filled(shape, &uniform, 1)),
        [0x4004_44d0_dafe_6b55, 0xbfd8_a631_c4ae_d882, 0x3fde_2e8d_9cdc_a68c]
    );
    assert_eq!(
        at(filled(shape, &uniform, 0xfedc_ba98_7654_3210)),
        [0x3ffd_7c0e_e031_6bd4, 0x3fec_aa7e_7f80_cbe4, 0x4004_ba55_2478_5505]
    );
}

#[test]
fn every_filler_writes_its_distribution() {
    let shape = [8, 4, 6, 6];
    let count = 8 * 4 * 6 * 6;
    let sum = |values: &[f64]| values.iter().sum::<f64>();
    let deviation = |values: &[f64]| {
        (values.iter().map(|value| value * value).sum::<f64>() / values.len() as f64).sqrt()
    };
    assert_eq!(filled::<f64>(shape, &Filler::default(), 1), vec![0.0; count]);
    assert_eq!(filled::<f32>(shape, &Filler::Constant { value: 0.1 }, 1), vec![0.1; count]);

    let uniform = filled::<f64>(shape, &Filler::Uniform { min: 2.0, max: 3.0 }, 1);
    assert!(uniform.iter().all(|value| (2.0..=3.0).contains(value)));
    assert!((sum(&uniform) / count as f64 - 2.5).abs() < 0.05);

    let normal = Filler::Gaussian { mean: 5.0, std: 0.5, sparse: None };
    let normal = filled::<f64>(shape, &normal, 1);
    assert!((sum(&normal) / count as f64 - 5.0).abs() < 0.1);
    assert!(normal.iter().all(|value| *value != 0.0));
    let sparse = Filler::Gaussian { mean: 5.0, std: 0.5, sparse: Some(2) };
    let zeros = filled::<f64>(shape, &sparse, 1).iter().filter(|value| **value == 0.0).count();
    assert!((0.7..0.8).contains(&(zeros as f64 / count as f64)), "{zeros} of {count} are zero");

    let ball = filled::<f64>(shape, &Filler::PositiveUnitball, 1);
    assert!(ball.chunks(count / 8).all(|row| (sum(row) - 1.0).abs() < 1e-12));

    // In this shape each output has 144 inputs, and each input has 288 outputs.
    for (variance, n) in
        [(Variance::FanIn, 144.0), (Variance::FanOut, 288.0), (Variance::Average, 216.0)]
    {
        let bound = f64::sqrt(3.0 / n);
        let xavier = filled::<f64>(shape, &Filler::Xavier { variance }, 1);
        let most = xavier.iter().fold(0.0, |most: f64, value| most.max(value.abs()));
        assert!((0.98 * bound..=bound).contains(&most), "{variance:?}: {most} of {bound}");
        let msra = deviation(&filled(shape, &Filler::Msra { variance }, 1));
        assert!((msra / f64::sqrt(2.0 / n) - 1.0).abs() < 0.08, "{variance:?}: {msra}");
    }

    let bilinear = filled::<f32>(shape, &Filler::Bilinear, 1);
    let third_row = [1.0, 3.0, 5.0, 5.0, 3.0, 1.0].map(|x| (5.0 / 6.0 * x / 6.0) as f32);
    assert!(bilinear[12..18].iter().zip(third_row).all(|(is, wants)| (is - wants).abs() < 1e-7));
}

#[test]
fn wrong_numbers_and_shapes_are_errors_and_write_nothing() {
    let gaussian = |mean, std, sparse| Filler::Gaussian { mean, std, sparse };
    for filler in [
        Filler::Constant { value: f64::NAN },
        Filler::Uniform { min: 1.0, max: 0.5 },
        Filler::Uniform { min: f64::NEG_INFINITY, max: 0.5 },
        gaussian(f64::INFINITY, 1.0, None),
        gaussian(0.0, -1.0, None),
        gaussian(0.0, 1.0, Some(3)),
        gaussian(0.0, 1.0, Some(1 << 31)),
    ] {
        assert_eq!(kind_of(&[2, 3], filler), ErrorKind::InvalidArgument, "{filler:?}");
    }
    let variance = Variance::FanIn;
    for (shape, filler) in [
        (&[][..], Filler::PositiveUnitball),
        (&[], Filler::Xavier { variance }),
        (&[], Filler::Msra { variance }),
        (&[2, 3, 4], Filler::Bilinear),
        (&[2, 3, 4, 5], Filler::Bilinear),
    ] {
        assert_eq!(kind_of(shape, filler), ErrorKind::ShapeMismatch, "{filler:?}");
    }
}

#[test]
fn a_blob_of_any_type_is_filled_if_it_holds_floats() {
    let filler = Filler::Constant { value: 0.5 };
    let mut any = BlobAny::from(Blob::<f64>::zeros([2]).unwrap());
    any.initialize(&filler, 1).unwrap();
    assert_eq!(any.downcast_ref::<f64>().unwrap().data().unwrap(), [0.5; 2]);
    let mut any = BlobAny::from(Blob::<i32>::zeros([2]).unwrap());
    assert_eq!(any.initialize(&filler, 1).unwrap_err().kind(), ErrorKind::Unsupported);
    assert_eq!(any.downcast_ref::<i32>().unwrap().data().unwrap(), [0; 2]);
}

#[test]
fn messages_are_read_with_caffes_defaults() {
    let parsed = |bytes: &[u8]| Filler::from_proto(bytes).unwrap();
    assert_eq!(parsed(b""), Filler::default());
    assert_eq!(parsed(b"\x15\x00\x00\x00\x40"), Filler::Constant { value: 2.0 });
    assert_eq!(parsed(b"\x0a\x07uniform"), Filler::Uniform { min: 0.0, max: 1.0 });
    let normal = Filler::Gaussian { mean: 0.0, std: 1.0, sparse: None };
    assert_eq!(parsed(b"\x0a\x08gaussian"), normal);
    let sparse = Filler::Gaussian { mean: 0.0, std: 0.25, sparse: Some(3) };
    assert_eq!(parsed(b"\x0a\x08gaussian\x35\x00\x00\x80\x3e\x38\x03"), sparse);
    assert_eq!(parsed(b"\x0a\x11positive_unitball"), Filler::PositiveUnitball);
    assert_eq!(parsed(b"\x0a\x04msra"), Filler::Msra { variance: Variance::FanIn });
    assert_eq!(parsed(b"\x0a\x04msra\x40\x01"), Filler::Msra { variance: Variance::FanOut });
    assert_eq!(parsed(b"\x0a\x08bilinear"), Filler::Bilinear);
}

#[test]
fn malformed_messages_are_errors_with_an_offset() {
    let error = Filler::from_proto(b"\x15\x00\x00\x00\x40\x0a\x05mrsa!").unwrap_err();
    assert_eq!((error.kind(), error.offset()), (ErrorKind::Malformed, Some(5)));
    assert!(error.message().contains("mrsa!"), "{error}");
    let error = Filler::from_proto(b"\x0a\x07uniform\x1d\x00\x00\x00\x40").unwrap_err();
    assert_eq!((error.kind(), error.offset()), (ErrorKind::Malformed, Some(9)));
    assert_eq!(Filler::from_proto(b"\x0a").unwrap_err().kind(), ErrorKind::Malformed);
}

#[test]
fn names_are_caffes() {
    assert_eq!(Filler::default().type_name(), "constant");
    assert_eq!(Filler::PositiveUnitball.type_name(), "positive_unitball");
    assert_eq!(Filler::Bilinear.type_name(), "bilinear");
}
