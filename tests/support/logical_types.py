"""Logical types of leaves, and the Arrow types that they stand for."""

from __future__ import annotations

import pyarrow as pa

LEAVES = {
    "null": pa.null(),
    "bool": pa.bool_(),
    "int8": pa.int8(),
    "uint64": pa.uint64(),
    "halffloat": pa.float16(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "large_string": pa.large_string(),
    "binary": pa.binary(),
    "large_binary": pa.large_binary(),
    "date32:day": pa.date32(),
    "date64:ms": pa.date64(),
    "time32:s": pa.time32("s"),
    "time32:ms": pa.time32("ms"),
    "time64:us": pa.time64("us"),
    "time64:ns": pa.time64("ns"),
    "duration:ms": pa.duration("ms"),
    "timestamp:us:-": pa.timestamp("us"),
    "timestamp:s:UTC": pa.timestamp("s", "UTC"),
    "timestamp:ns:+05:30": pa.timestamp("ns", "+05:30"),
    "timestamp:ms:Europe/Paris": pa.timestamp("ms", "Europe/Paris"),
    "decimal:128:20:2": pa.decimal128(20, 2),
    "decimal:256:40:-2": pa.decimal256(40, -2),
    "fixed_size_binary:16": pa.binary(16),
    "fixed_size_binary:0": pa.binary(0),
    "dict:string:int8:false": pa.dictionary(pa.int8(), pa.string()),
    "dict:int64:uint32:false": pa.dictionary(pa.uint32(), pa.int64()),
    "fixed_size_list:float:128": pa.list_(pa.float32(), 128),
    "fixed_size_list:timestamp:us:+05:30:2": pa.list_(pa.timestamp("us", "+05:30"), 2),
    "fixed_size_list:decimal:128:10:2:3": pa.list_(pa.decimal128(10, 2), 3),
    "fixed_size_list:fixed_size_list:float:4:3": pa.list_(pa.list_(pa.float32(), 4), 3),
    "fixed_size_list:dict:string:int8:false:2": pa.list_(pa.dictionary(pa.int8(), pa.string()), 2),
}
