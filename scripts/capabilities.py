"""capabilities.py MODULE FILE: lists in FILE, below `allowed_capabilities:`, what the module needs of Envoy.

That is every function it imports, and every callback of the proxy-wasm ABI it exports.
"""

import pathlib
import re
import sys

IMPORTS, EXPORTS = 2, 7  # ids of sections
FUNCTION, TABLE, MEMORY, GLOBAL = range(4)  # kinds of imports and exports


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def byte(self):
        self.at += 1
        return self.data[self.at - 1]

    def number(self):
        """LEB128."""
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def bytes(self):
        length = self.number()
        self.at += length
        return self.data[self.at - length : self.at]

    def text(self):
        return self.bytes().decode()

    def limits(self):
        maximum = self.byte() & 1
        self.number()
        if maximum:
            self.number()


def sections(module):
    reader = Reader(module)
    reader.at = len(b"\0asm") + 4
    while reader.at < len(module):
        yield reader.byte(), Reader(reader.bytes())


def imports(section):
    for _ in range(section.number()):
        section.bytes()  # env or wasi_snapshot_preview1
        name, kind = section.text(), section.byte()
        if kind == FUNCTION:
            section.number()
            yield name
        elif kind == TABLE:
            section.byte()
            section.limits()
        elif kind == MEMORY:
            section.limits()
        elif kind == GLOBAL:
            section.byte(), section.byte()


def exports(section):
    for _ in range(section.number()):
        name, kind = section.text(), section.byte()
        section.number()
        if kind == FUNCTION and name.startswith("proxy_on_") and name != "proxy_on_memory_allocate":
            yield name


def main(module, file):
    names = set()
    for number, section in sections(pathlib.Path(module).read_bytes()):
        if number == IMPORTS:
            names.update(imports(section))
        elif number == EXPORTS:
            names.update(exports(section))
    file = pathlib.Path(file)
    place = re.compile(r"^( *)allowed_capabilities:\n(?:\1  \w+: \{\}\n)*", re.M)
    new = lambda found: f"{found[1]}allowed_capabilities:\n" + "".join(f"{found[1]}  {name}: {{}}\n" for name in sorted(names))
    text, places = place.subn(new, file.read_text())
    if places != 1:
        sys.exit(f"{file} has no place for allowed_capabilities")
    file.write_text(text)


if __name__ == "__main__":
    main(*sys.argv[1:])
