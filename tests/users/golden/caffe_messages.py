"""Makes Caffe's message classes for Google's protobuf from a caffe.proto.

Uses no generated code, which would require a Python protobuf that fits the version of protoc.
"""

import pathlib
import subprocess
import tempfile

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory


def read_descriptor(proto):
    proto = pathlib.Path(proto)
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder, "descriptors")
        command = ["protoc", f"--descriptor_set_out={out}", f"--proto_path={proto.parent}", proto.name]
        subprocess.run(command, check=True, stderr=subprocess.PIPE)
        descriptors = descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes())
    return descriptors.file[0]


class Messages:
    def __init__(self, file_descriptor):
        self._pool = descriptor_pool.DescriptorPool()
        self._pool.Add(file_descriptor)
        self._package = file_descriptor.package

    def __getattr__(self, name):
        descriptor = self._pool.FindMessageTypeByName(f"{self._package}.{name}")
        return message_factory.GetMessageClass(descriptor)


def with_raw_fields(file_descriptor):
    """NVCaffe adds four fields to BlobProto."""
    copy = descriptor_pb2.FileDescriptorProto.FromString(file_descriptor.SerializeToString())
    blob = next(message for message in copy.message_type if message.name == "BlobProto")
    enum = blob.enum_type.add(name="RawType")
    for number, name in enumerate(("DOUBLE", "FLOAT", "FLOAT16", "INT", "UINT")):
        enum.value.add(name=name, number=number)
    types = descriptor_pb2.FieldDescriptorProto
    for name, number in (("raw_data", 12), ("raw_diff", 13)):
        blob.field.add(name=name, number=number, type=types.TYPE_BYTES, label=types.LABEL_OPTIONAL)
        blob.field.add(name=f"{name}_type", number=number - 2, type=types.TYPE_ENUM,
                       type_name=f".{copy.package}.BlobProto.RawType", label=types.LABEL_OPTIONAL)
    return copy
