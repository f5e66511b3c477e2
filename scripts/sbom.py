"""sbom.py MODULE SBOM: the crates in the module, as a CycloneDX bill of materials.

From Cargo.lock by `cargo metadata`: what the library is made of, and not what only tests or builds use.
"""

import hashlib
import json
import pathlib
import re
import subprocess
import sys

TARGET = "wasm32-wasip1"


def main(module, sbom):
    command = ["cargo", "metadata", "--format-version=1", "--locked", f"--filter-platform={TARGET}"]
    metadata = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    root = metadata["resolve"]["root"]
    checksums = locked_checksums()

    graph, waiting = {}, [root]
    while waiting:
        crate = waiting.pop()
        if crate not in graph:
            graph[crate] = sorted(linked(nodes[crate], packages))
            waiting += graph[crate]

    components = [component(packages[crate], checksums) for crate in sorted(graph) if crate != root]
    subject = component(packages[root], {})
    digest = hashlib.sha256(pathlib.Path(module).read_bytes()).hexdigest()
    subject["hashes"] = [{"alg": "SHA-256", "content": digest}]
    bill = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": subject},
        "components": components,
        "dependencies": [
            {"ref": purl(packages[crate]), "dependsOn": [purl(packages[each]) for each in needed]}
            for crate, needed in sorted(graph.items())
        ],
    }
    pathlib.Path(sbom).write_text(json.dumps(bill, indent=2) + "\n")


def linked(node, packages):
    """The crates that become part of this one: no dev or build dependency, no macro."""
    for dependency in node["deps"]:
        kinds = {kind["kind"] for kind in dependency["dep_kinds"]}
        macro = any("proc-macro" in target["kind"] for target in packages[dependency["pkg"]]["targets"])
        if None in kinds and not macro:
            yield dependency["pkg"]


def component(package, checksums):
    described = {
        "type": "library",
        "bom-ref": purl(package),
        "name": package["name"],
        "version": package["version"],
        "purl": purl(package),
    }
    if package["license"]:
        described["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    checksum = checksums.get((package["name"], package["version"]))
    if checksum:
        described["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    return described


def purl(package):
    return f"pkg:cargo/{package['name']}@{package['version']}"


def locked_checksums():
    entry = re.compile(r'name = "(.+)"\nversion = "(.+)"\nsource = .*\nchecksum = "(.+)"')
    return {found[:2]: found[2] for found in entry.findall(pathlib.Path("Cargo.lock").read_text())}


if __name__ == "__main__":
    main(*sys.argv[1:])
