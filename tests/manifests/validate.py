"""validate.py MANIFEST...: fails unless each object has the shape that its definition in crds/ gives it.

A field that the definition does not know is refused, where the API server would drop it in silence.
Rules in CEL (x-kubernetes-validations) are not evaluated.
"""

import pathlib
import sys

import jsonschema
import yaml

TOP = {"apiVersion", "kind", "metadata", "spec"}


def documents(path):
    return [document for document in yaml.safe_load_all(path.read_text()) if document]


def definitions():
    """The schema of each spec, closed, by apiVersion and kind."""
    known = {}
    for path in (pathlib.Path(__file__).parent / "crds").glob("*.yaml"):
        for crd in documents(path):
            group, kind = crd["spec"]["group"], crd["spec"]["names"]["kind"]
            for version in crd["spec"]["versions"]:
                schema = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
                known[f"{group}/{version['name']}", kind] = closed(schema)
    return known


def closed(schema):
    """The schema with every object that lists its properties shut to others."""
    schema = dict(schema)
    if schema.get("x-kubernetes-int-or-string"):
        schema.pop("type", None)
    if "properties" in schema:
        schema["properties"] = {name: closed(each) for name, each in schema["properties"].items()}
        if not schema.get("x-kubernetes-preserve-unknown-fields"):
            schema.setdefault("additionalProperties", False)
    for inner in ("items", "additionalProperties"):
        if isinstance(schema.get(inner), dict):
            schema[inner] = closed(schema[inner])
    return schema


def complaints(manifest, known):
    schema = known.get((manifest.get("apiVersion"), manifest.get("kind")))
    if schema is None:
        yield f"no definition of {manifest.get('apiVersion')} {manifest.get('kind')} in crds/"
        return
    for field in sorted(set(manifest) ^ TOP):
        yield f"{field}: {'unknown' if field in manifest else 'missing'}"
    for error in jsonschema.Draft7Validator(schema).iter_errors(manifest.get("spec")):
        yield f"spec{error.json_path[1:]}: {error.message}"


def main():
    known, wrong = definitions(), 0
    for path in map(pathlib.Path, sys.argv[1:]):
        for number, manifest in enumerate(documents(path), 1):
            for complaint in complaints(manifest, known):
                wrong += 1
                print(f"{path}, document {number}: {complaint}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
