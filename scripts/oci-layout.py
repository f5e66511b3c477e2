"""oci-layout.py MODULE LAYOUT [KEY=VALUE...]: puts the module into an OCI image layout, as /plugin.wasm.

The form that both Istio and Envoy Gateway take: one manifest for linux/amd64 in OCI media types, its
last layer a gzipped tar with a file called plugin.wasm. The same input gives the same bytes. Each
KEY=VALUE is an org.opencontainers.image annotation and label. Prints the digest of the manifest.
"""

import datetime
import gzip
import hashlib
import io
import json
import pathlib
import shutil
import sys
import tarfile

OCI = "application/vnd.oci.image"
PLATFORM = {"architecture": "amd64", "os": "linux"}  # a label only: Envoy runs wasm anywhere


def main(module, layout, *about):
    about = dict(each.split("=", 1) for each in about)
    epoch = int(about.pop("created", 0))
    about["created"] = datetime.datetime.fromtimestamp(epoch, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    labels = {f"org.opencontainers.image.{key}": value for key, value in sorted(about.items())}

    final, layout = pathlib.Path(layout), pathlib.Path(layout + ".part")
    shutil.rmtree(layout, ignore_errors=True)
    blobs = layout / "blobs/sha256"
    blobs.mkdir(parents=True)

    def blob(kind, content):
        digest = hashlib.sha256(content).hexdigest()
        (blobs / digest).write_bytes(content)
        return {"mediaType": f"{OCI}.{kind}", "digest": f"sha256:{digest}", "size": len(content)}

    archive = tar(pathlib.Path(module).read_bytes(), epoch)
    layer = blob("layer.v1.tar+gzip", gzip.compress(archive, mtime=0))
    config = PLATFORM | {
        "created": about["created"],
        "config": {"Labels": labels},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(archive).hexdigest()}"]},
        "history": [{"created": about["created"], "created_by": "COPY plugin.wasm /"}],
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": f"{OCI}.manifest.v1+json",
        "config": blob("config.v1+json", encode(config)),
        "layers": [layer],
        "annotations": labels,
    }
    manifest = blob("manifest.v1+json", encode(manifest)) | {"platform": PLATFORM}
    index = {"schemaVersion": 2, "mediaType": f"{OCI}.index.v1+json", "manifests": [manifest]}
    (layout / "index.json").write_bytes(encode(index))
    (layout / "oci-layout").write_bytes(encode({"imageLayoutVersion": "1.0.0"}))

    shutil.rmtree(final, ignore_errors=True)
    layout.rename(final)
    print(manifest["digest"])


def tar(module, epoch):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        member = tarfile.TarInfo("plugin.wasm")
        member.size, member.mode, member.mtime = len(module), 0o644, epoch
        archive.addfile(member, io.BytesIO(module))
    return packed.getvalue()


def encode(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


if __name__ == "__main__":
    main(*sys.argv[1:])
