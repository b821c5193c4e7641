# SPDX-License-Identifier: BSD-3-Clause
"""Schemathesis on ``/openapi.json``, all phases: no answer breaks, or breaks its description.

    PYTHONPATH=tests python -m service.schema_fuzz --examples 100        (pip install schemathesis)

A service in a process of its own on 127.0.0.1. Requests that mean something are as likely as
nonsense, since the description they are drawn from has the model's name, columns and ids.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import httpx

from adiabat.service.keys import KeyRing

from service.evidence import WIDTH, make, serving


def meaningful(operation):
    """Have half of the requests name the model, its columns and its rows."""
    ids = {"enum": [f"c{k}" for k in range(60)]}
    row = {f"x{j}": {"type": "number", "minimum": -9, "maximum": 9} for j in range(WIDTH)}
    new = {"id": {"type": "string", "pattern": "^n[0-9]{1,6}$"}, **row, "y": {"enum": [0, 1]}}
    old = {"id": ids, "y": {"enum": [0, 1]}}
    known = {
        "rows": [rows_like(new), rows_like(old), rows_like(row)],
        "ids": [{"type": "array", "items": ids, "minItems": 1, "maxItems": 2}],
    }
    names = {"m": {"const": "m"}, "reference": {"enum": ["r1", "r2"]},
             "Idempotency-Key": {"enum": ["r1", "r2", "r3"]}}  # fmt: skip
    for parameter in operation.get("parameters", ()):
        if parameter["name"] in names:
            either = [names[parameter["name"]], parameter["schema"]]
            parameter["schema"] = {"anyOf": either, "title": parameter["name"]}
    for content in operation.get("requestBody", {}).get("content", {}).values():
        for name, shape in content["schema"].get("properties", {}).items():
            if name in known:
                content["schema"]["properties"][name] = {"anyOf": [*known[name], shape]}


def rows_like(columns):
    """A schema of one or two rows with just these columns."""
    row = {"type": "object", "properties": columns, "required": list(columns),
           "additionalProperties": False}  # fmt: skip
    return {"type": "array", "items": row, "minItems": 1, "maxItems": 2}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--examples", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        make(Path(folder), 60)
        _, key = KeyRing(folder).add("fuzz", ["admin"])
        said = {"Authorization": f"Bearer {key}"}
        with serving(folder, forked=True) as (address, process):
            found = httpx.get(f"{address}/openapi.json", timeout=300, headers=said).json()
            text = json.dumps(found)
            described = json.loads(text)
            for path in described["paths"].values():
                for operation in path.values():
                    meaningful(operation)
            schema = Path(folder) / "openapi.json"
            schema.write_text(json.dumps(described))
            words = [
                str(Path(sys.executable).parent / "schemathesis"), "run", str(schema),
                "--url", address, "-H", f"Authorization: Bearer {key}", "--request-timeout", "120",
                "--seed", str(given.seed),
                "--max-examples", str(given.examples),
                "--checks", "not_a_server_error,status_code_conformance,content_type_conformance,"
                "response_schema_conformance,response_headers_conformance",
                "--phases", "examples,coverage,fuzzing,stateful", "--continue-on-failure",
            ]  # fmt: skip
            done = subprocess.run(words, capture_output=True, text=True, cwd=folder)
            sys.stdout.write(done.stdout[-6000:])
            sys.stderr.write(done.stderr[-2000:])
            answered = httpx.get(f"{address}/metrics", timeout=300, headers=said).text
            counts = re.findall(r'adiabat_requests_total\{.*?status="(\d+)"\} ([\d.e+]+)', answered)
            statuses = {}
            for status, count in counts:
                statuses[status] = statuses.get(status, 0) + int(float(count))
            print({"requests": sum(statuses.values()), "statuses": statuses})
            assert process.poll() is None
        sys.exit(done.returncode)


if __name__ == "__main__":
    main()
