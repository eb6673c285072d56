//! A small web service. The reply to a `POST` of a `.caffemodel` lists the model's layers, or
//! explains why the service refuses the file. The service refuses any file that needs more memory
//! than the limits allow.
//!
//! ```sh
//! cargo run --example web_service -- 127.0.0.1:8080 &
//! curl --data-binary @resnet.caffemodel http://127.0.0.1:8080/
//! ```

use std::error::Error;
use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use std::{env, process, thread};

use syncblob::{Context, ErrorKind, Limits, Model, OpenOptions, Part};

const MAX_BODY: usize = 64 << 20;
const MAX_CONNECTIONS: usize = 8;

fn main() {
    let Some(address) = env::args().nth(1) else {
        eprintln!("usage: web_service ADDRESS:PORT");
        process::exit(2);
    };
    let served = TcpListener::bind(&address).map_err(Box::from).and_then(serve);
    if let Err(error) = served {
        eprintln!("web_service: {error}");
        process::exit(1);
    }
}

pub fn serve(listener: TcpListener) -> Result<(), Box<dyn Error>> {
    static CONNECTIONS: AtomicUsize = AtomicUsize::new(0);
    // `max_host_bytes` limits all models together; `limits` applies to each model.
    let context = Context::builder()
        .max_host_bytes(256 << 20)
        .limits(Limits::new().max_memory(32 << 20).max_layers(10_000).max_blobs(50_000))
        .build()?;
    println!("listening on {}", listener.local_addr()?);
    for stream in listener.incoming() {
        let (stream, context) = (stream?, context.clone());
        if CONNECTIONS.fetch_add(1, Ordering::SeqCst) >= MAX_CONNECTIONS {
            let _ = reply(&stream, 503, "too many requests at once\n");
            CONNECTIONS.fetch_sub(1, Ordering::SeqCst);
            continue;
        }
        thread::spawn(move || {
            if let Err(error) = answer(&stream, &context) {
                eprintln!("web_service: {error}");
            }
            CONNECTIONS.fetch_sub(1, Ordering::SeqCst);
        });
    }
    Ok(())
}

fn answer(stream: &TcpStream, context: &Context) -> io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    stream.set_write_timeout(Some(Duration::from_secs(10)))?;
    match read_body(stream)? {
        Ok(body) => match describe(context, body) {
            Ok(text) => reply(stream, 200, &text),
            Err(error) => reply(stream, status_of(error.kind()), &format!("{error}\n")),
        },
        Err((status, text)) => reply(stream, status, text),
    }
}

/// Reads the body. The inner error is the reply to an invalid request.
fn read_body(stream: &TcpStream) -> io::Result<Result<Vec<u8>, (u16, &'static str)>> {
    let mut reader = BufReader::new(stream);
    let head = read_head(&mut (&mut reader).take(16 << 10))?;
    if !head.starts_with("POST ") {
        return Ok(Err((405, "POST a .caffemodel\n")));
    }
    let length: Option<usize> = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    });
    match length {
        None => Ok(Err((411, "send a Content-Length header\n"))),
        Some(length) if length > MAX_BODY => Ok(Err((413, "64 MiB at most\n"))),
        Some(length) => {
            let mut body = Vec::new();
            let read = reader.take(length as u64).read_to_end(&mut body)?;
            Ok(if read == length { Ok(body) } else { Err((400, "the body is cut off\n")) })
        }
    }
}

fn read_head(reader: &mut impl BufRead) -> io::Result<String> {
    let mut head = String::new();
    while reader.read_line(&mut head)? > 0 && !head.ends_with("\r\n\r\n") {}
    Ok(head)
}

fn describe(context: &Context, body: Vec<u8>) -> syncblob::Result<String> {
    let model: Model = OpenOptions::new().context(context).from_bytes(body)?;
    let mut text = format!("{} of {} layers\n", model.format(), model.num_layers());
    for layer in model.layers() {
        for blob in layer.blobs() {
            let loaded = blob?.load::<f32>()?;
            let (name, sum) = (layer.name(), loaded.asum(Part::Data)?);
            let _ = writeln!(text, "{} {loaded} asum {sum:.4}", name.escape_debug());
        }
    }
    Ok(text)
}

/// Returns the HTTP status of an error: 4xx for an error in the file, 5xx for any other.
fn status_of(kind: ErrorKind) -> u16 {
    match kind {
        ErrorKind::DataLimit => 413,
        ErrorKind::OutOfMemory | ErrorKind::CapReached => 503,
        ErrorKind::Malformed
        | ErrorKind::LengthMismatch
        | ErrorKind::BadShape
        | ErrorKind::DataOverflow => 422,
        _ => 500,
    }
}

fn reply(mut stream: &TcpStream, status: u16, text: &str) -> io::Result<()> {
    let (length, kind) = (text.len(), "text/plain; charset=utf-8");
    write!(
        stream,
        "HTTP/1.1 {status} \r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{text}"
    )
}
