//! Writes tensors as NumPy files: one array, or an archive of arrays as `numpy.savez` writes it.

use std::cell::Cell;
use std::fs::File;
use std::io::{Seek, Write};

use npyz::{DType, WriteOptions, WriterBuilder};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::archive::Until;
use super::plan::{Item, Plan};
use super::values::Reader;
use crate::source::{Failure, Result};

/// The largest array that an archive stores without zip's 64-bit sizes: 4 GiB, minus 1 MiB for the
/// array's header.
const LARGE: u64 = (4 << 30) - (1 << 20);

pub fn write_array(plan: &Plan, reader: &Reader, mut file: &File) -> Result<()> {
    write_item(plan.single()?, reader, &mut file)
}

pub fn write_archive(plan: &Plan, reader: &Reader, file: &File) -> Result<()> {
    let is_over = Cell::new(false);
    let mut archive = ZipWriter::new(Until::new(file, &is_over));
    write_items(plan, reader, &mut archive).inspect_err(|_| is_over.set(true))?;
    archive.finish()?.flush()?;
    Ok(())
}

fn write_items(
    plan: &Plan,
    reader: &Reader,
    archive: &mut ZipWriter<impl Write + Seek>,
) -> Result<()> {
    for item in &plan.items {
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Stored)
            .large_file(item.bytes() as u64 > LARGE);
        archive.start_file(npyz::npz::file_name_from_array_name(&item.name), options)?;
        write_item(item, reader, archive)?;
    }
    Ok(())
}

fn write_item(item: &Item, reader: &Reader, out: &mut impl Write) -> Result<()> {
    let shape: Vec<u64> = item.shape.iter().map(|dim| *dim as u64).collect();
    let Some(typestr) = item.dtype.typestr() else {
        return Err(Failure::Unsupported(format!("NumPy has no {}", item.dtype)));
    };
    WriteOptions::new_header_only()
        .dtype(DType::new_scalar(typestr.parse().expect("NumPy knows the type")))
        .shape(&shape)
        .writer(&mut *out)
        .write_header_only()?;
    reader.bytes(item, &mut |bytes| Ok(out.write_all(bytes)?))
}
