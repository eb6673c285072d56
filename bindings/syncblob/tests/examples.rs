use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use syncblob::{Blob, Format, Model, Payload};

#[allow(dead_code)]
#[path = "../examples/data_parallel.rs"]
mod data_parallel;
#[allow(dead_code)]
#[path = "../examples/model_inspector.rs"]
mod model_inspector;
#[allow(dead_code)]
#[cfg(feature = "comm")]
#[path = "../examples/train.rs"]
mod train;
#[allow(dead_code)]
#[path = "../examples/web_service.rs"]
mod web_service;

fn net(bias: f32) -> Model {
    let mut model = Model::create(Format::Caffemodel).unwrap();
    model.set_name("net").unwrap();
    let ip = model.add_layer("ip", "InnerProduct").unwrap();
    let weights = Blob::<f32>::from_slice([1, 2], &[1.0, -3.0]).unwrap();
    model.add_blob(ip, &weights, Payload::Data).unwrap();
    model.add_blob(ip, &Blob::<f32>::full([1], bias).unwrap(), Payload::Data).unwrap();
    model
}

#[test]
fn workers_learn_the_line() {
    let (weights, loss) = data_parallel::learn().unwrap();
    assert!(loss < 1e-6, "{loss}");
    for (learned, truth) in weights.iter().zip([2.0, -3.0, 0.5]) {
        assert!((learned - truth).abs() < 1e-3, "{weights:?}");
    }
}

#[cfg(feature = "comm")]
#[test]
fn ranks_train_as_one_rank_does_and_continue_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let snapshot = dir.path().join("snapshot");
    let run = train::Run { steps: 200, ..train::Run::default() };
    let alone = train::train_threads(1, &run).unwrap();
    assert!(alone[199] < alone[0] / 2.0, "no learning: {} to {}", alone[0], alone[199]);
    let saving = train::Run { save: Some((120, snapshot.clone())), ..run.clone() };
    let together = train::train_threads(4, &saving).unwrap();
    assert_eq!(together.len(), 200);
    for (step, (one, four)) in alone.iter().zip(&together).enumerate() {
        assert!((one - four).abs() < 1e-6, "step {step}: {one}, {four}");
    }
    let restored = train::Run { restore: Some(snapshot), ..run };
    assert_eq!(train::train_threads(4, &restored).unwrap(), together[120..]);
}

#[test]
fn the_inspector_reports_shapes_ranges_and_suspicious_values() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("net.caffemodel");
    for (bias, complaint) in
        [(0.5, None), (f32::NAN, Some("1 not finite")), (0.0, Some("all zero"))]
    {
        net(bias).save(&path).unwrap();
        let report = model_inspector::inspect(&path).unwrap();
        assert!(report.contains("ip (InnerProduct)") && report.contains("[1, 2]"), "{report}");
        assert!(report.contains("-3.00000 .. 1.00000"), "{report}");
        let wrong = usize::from(complaint.is_some());
        assert!(report.contains(&format!("3 parameters, {wrong} blobs look wrong")), "{report}");
        assert!(complaint.is_none_or(|complaint| report.contains(complaint)), "{report}");
    }
}

fn post(address: SocketAddr, head: &str, body: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(head.as_bytes()).unwrap();
    let _ = stream.write_all(body); // fails if the server has already replied and closed
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let mut reply = String::new();
    let _ = stream.read_to_string(&mut reply);
    reply
}

#[test]
fn the_service_loads_models_and_refuses_bombs() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || web_service::serve(listener).unwrap());
    let upload = |body: &[u8]| {
        post(address, &format!("POST / HTTP/1.1\r\nContent-Length: {}\r\n\r\n", body.len()), body)
    };
    let good = net(0.5).to_bytes().unwrap();
    let reply = upload(&good);
    assert!(reply.starts_with("HTTP/1.1 200 "), "{reply}");
    assert!(reply.ends_with("ip 1 2 (2) asum 4.0000\nip 1 (1) asum 0.5000\n"), "{reply}");

    // layer {} layer {} ...
    let many_layers = [0xa2, 0x06, 0x00].repeat(20_000);
    // layer { blobs { shape { dim: 2^40 } data: [0] } }
    let blob = [0x3a, 8, 0x0a, 6, 0x80, 0x80, 0x80, 0x80, 0x80, 0x20, 0x2a, 4, 0, 0, 0, 0];
    let claims_terabytes = [&[0xa2, 0x06, 18, 0x3a, 16][..], &blob].concat();
    let huge = Blob::<f32>::full([9 << 20], 1.0).unwrap(); // 36 MiB; the service allows 32 MiB
    let mut large = net(0.5);
    large.add_blob(0, &huge, Payload::Data).unwrap();
    for (body, status, words) in [
        (&many_layers, "413", "10000"),
        (&claims_terabytes, "422", "1099511627776"),
        (&large.to_bytes().unwrap(), "413", "limit"),
        (&b"\xff\xff rubbish".to_vec(), "422", "offset"),
        (&good[..good.len() - 3].to_vec(), "422", "offset"),
    ] {
        let reply = upload(body);
        assert!(reply.starts_with(&format!("HTTP/1.1 {status} ")), "{status}: {reply}");
        assert!(reply.contains(words), "{words}: {reply}");
    }
    for (head, status) in [
        ("GET / HTTP/1.1\r\n\r\n", "405"),
        ("POST / HTTP/1.1\r\n\r\n", "411"),
        ("POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n", "413"),
        ("POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\nshort", "400"),
    ] {
        let reply = post(address, head, &[]);
        assert!(reply.starts_with(&format!("HTTP/1.1 {status} ")), "{status}: {reply}");
    }
    assert!(upload(&good).starts_with("HTTP/1.1 200 "), "the server still works");
}
