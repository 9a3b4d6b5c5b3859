"""Teaches schemathesis to write and read NDJSON: a document a line, an answer a line."""

import json

import schemathesis

NDJSON = "application/x-ndjson"


@schemathesis.serializer(NDJSON)
def write_line(ctx, value):
    if isinstance(value, bytes):
        return value
    return json.dumps(value).encode() + b"\n"


# Without a document there is no line, and nothing to hold against the schemas.
NO_LINE = {"line": 1, "id": "", "text": "", "labels": []}


@schemathesis.deserializer(NDJSON)
def read_first_line(ctx, response):
    """The first line, when all of them are JSON and documents were answered at all."""
    answers = [json.loads(line) for line in response.content.splitlines() if line.strip()]
    if not answers and (response.request.body or b"").strip():
        raise ValueError("documents without an answer")
    return answers[0] if answers else NO_LINE
