"""Checks a manifest of Kubernetes against a schema: manifest.py MANIFEST SCHEMA

Says what is wrong and where, one fault a line, and ends with 1. It needs no cluster and no network; Debian's
python3-yaml and python3-jsonschema.
"""

import json
import sys

import jsonschema
import yaml


def faults(manifest, schema):
    """What is wrong with a manifest, each as `place: what`."""
    validator = jsonschema.Draft7Validator(schema)
    found = sorted(validator.iter_errors(manifest), key=lambda fault: [str(at) for at in fault.path])
    return [f"{'.'.join(map(str, fault.path)) or 'top'}: {fault.message}" for fault in found]


def read(manifest_path, schema_path):
    """A manifest and a schema."""
    with open(manifest_path, encoding="utf-8") as file:
        manifest = yaml.safe_load(file)
    with open(schema_path, encoding="utf-8") as file:
        return manifest, json.load(file)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(f"usage: {sys.argv[0]} MANIFEST SCHEMA")
    problems = faults(*read(*sys.argv[1:]))
    for problem in problems:
        print(problem, file=sys.stderr)
    sys.exit(1 if problems else 0)
