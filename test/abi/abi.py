#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The binary interface that a public header promises, as lines of text, and what breaks it.

  abi.py describe HEADER MAP LIBRARY COMPILER...            prints it
  abi.py check STORED HEADER MAP LIBRARY COMPILER...        compares it with that of the last release

COMPILER is the C compiler with what a user's flags are. The description comes out of the debug
information of a small unit that includes the header, so that it is what a compiler makes of it:
functions with their symbol versions, sizes and offsets of structs, values of constants.

What is new breaks nothing, nor does a struct that begins with its size and grows; anything else does,
and needs another soname. Where the soname has changed since the last release, what is broken is listed
and allowed. What is experimental or internal by the version map is not promised: functions, the types
and constants named like them (those of window_alloc() begin with window_), and headers without a
function that is.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

from elftools.elf.elffile import ELFFile

UNPROMISED = {'EXPERIMENTAL', 'INTERNAL'}


def symbols(text):
    """{function: its version} of a version map."""
    text = re.sub(r'/\*.*?\*/|#[^\n]*', '', text, flags=re.DOTALL)
    found = {}
    for node, body in re.findall(r'(\w+)\s*\{(.*?)\}', text, flags=re.DOTALL):
        exported = re.search(r'global\s*:(.*?)(local\s*:|$)', body, flags=re.DOTALL)
        for name in re.findall(r'(\w+)\s*;', exported.group(1) if exported else ''):
            found[name] = node
    return found


def promised_headers(header, exported):
    """The header and those of its folder that it includes, but for the experimental ones."""
    names = re.findall(r'^#include <(\w+\.h)>', header.read_text(), flags=re.MULTILINE)
    parts = [part for name in names if (part := header.with_name(name)).exists()]
    stable = {name for name, node in exported.items() if node not in UNPROMISED}
    return [header, *(part for part in parts if stable.intersection(re.findall(r'\w+', part.read_text())))]


def experimental_prefixes(exported):
    """What the names of experimental functions begin with, and no others do."""
    def prefixes(unpromised):
        return {name.rsplit('_', 1)[0] + '_' for name, node in exported.items() if (node in UNPROMISED) == unpromised}
    kept = [name for name, node in exported.items() if node not in UNPROMISED]
    return tuple(sorted(p for p in prefixes(True) if p.count('_') > 1 and not any(n.startswith(p) for n in kept)))


def macros(headers, compiler):
    """{name: text} of the constants that the headers define."""
    header = headers[0]
    own = {name for part in headers
           for name in re.findall(r'^\s*#\s*define\s+(\w+)[ \t]+\S', part.read_text(), flags=re.MULTILINE)}
    output = subprocess.run([*compiler, f'-I{header.parent}', '-E', '-dM', '-include', header, '-x', 'c', '/dev/null'], check=True,
                            capture_output=True, text=True).stdout
    found = re.findall(r'^#define (\w+) (.+)$', output, flags=re.MULTILINE)
    return {name: text for name, text in found if name in own}


class Types:
    """Spells types of debug information as C would, near enough to compare."""

    KEYWORDS = {'DW_TAG_structure_type': 'struct', 'DW_TAG_union_type': 'union', 'DW_TAG_enumeration_type': 'enum'}

    @staticmethod
    def name(die):
        return die.attributes['DW_AT_name'].value.decode() if 'DW_AT_name' in die.attributes else '?'

    @staticmethod
    def target(die):
        return die.get_DIE_from_attribute('DW_AT_type') if 'DW_AT_type' in die.attributes else None

    @staticmethod
    def bounds(die):
        """What gcc says by the last index, clang says by a count."""
        for child in die.iter_children():
            if 'DW_AT_upper_bound' in child.attributes:
                yield f'[{child.attributes["DW_AT_upper_bound"].value + 1}]'
            elif 'DW_AT_count' in child.attributes:
                yield f'[{child.attributes["DW_AT_count"].value}]'

    def spell(self, die):
        if die is None:
            return 'void'
        if die.tag in self.KEYWORDS:
            return f'{self.KEYWORDS[die.tag]} {self.name(die)}'
        if die.tag == 'DW_TAG_pointer_type':
            target = self.target(die)
            if target is not None and target.tag == 'DW_TAG_subroutine_type':
                return self.function(target)
            return self.spell(target) + ' *'
        if die.tag == 'DW_TAG_const_type':
            return 'const ' + self.spell(self.target(die))
        if die.tag == 'DW_TAG_array_type':
            return self.spell(self.target(die)) + ''.join(self.bounds(die))
        if die.tag == 'DW_TAG_volatile_type':
            return 'volatile ' + self.spell(self.target(die))
        if die.tag == 'DW_TAG_subroutine_type':
            return self.function(die)
        return self.name(die)

    def function(self, die):
        parameters = [self.spell(self.target(child)) for child in die.iter_children()
                      if child.tag == 'DW_TAG_formal_parameter']
        return f'{self.spell(self.target(die))} ({", ".join(parameters) or "void"})'


def compiled(header, names, compiler, folder):
    """Debug information of a unit with a pointer to each function, which carries its prototype."""
    unit = pathlib.Path(folder, 'unit.c')
    pointers = ''.join(f'__typeof__({name}) *pointer_{name};\n' for name in names)
    unit.write_text(f'#include "{header}"\n{pointers}')
    subprocess.run([*compiler, f'-I{header.parent}', '-g', '-gdwarf-4', '-O0', '-fno-eliminate-unused-debug-types', '-c', unit, '-o',
                    unit.with_suffix('.o')], check=True)
    return unit.with_suffix('.o')


def from_headers(unit, headers):
    """The top-level entries of a unit that the headers themselves declare."""
    names = {header.name for header in headers}
    files = unit.dwarfinfo.line_program_for_CU(unit).header['file_entry']
    for die in unit.get_top_DIE().iter_children():
        at = die.attributes.get('DW_AT_decl_file')
        if at is not None and pathlib.PurePath(files[at.value - 1].name.decode()).name in names:
            yield die


def describe_types(unit, headers):
    types = Types()
    for die in from_headers(unit, headers):
        name = types.name(die)
        if die.tag == 'DW_TAG_structure_type' and 'DW_AT_byte_size' in die.attributes:
            yield f'struct {name}: {die.attributes["DW_AT_byte_size"].value} bytes'
            for field in die.iter_children():
                offset = field.attributes['DW_AT_data_member_location'].value
                yield f'struct {name} @{offset}: {types.spell(types.target(field))} {types.name(field)}'
        elif die.tag == 'DW_TAG_enumeration_type':
            yield f'enum {name}: {die.attributes["DW_AT_byte_size"].value} bytes'
            for constant in die.iter_children():
                yield f'enum {name} {types.name(constant)} = {constant.attributes["DW_AT_const_value"].value}'
        elif die.tag == 'DW_TAG_typedef':
            yield f'typedef {name}: {types.spell(types.target(die))}'


def describe(header, version_map, compiler):
    """The description, in an order that does not depend on that of the header."""
    every = symbols(version_map.read_text())
    exported = {name: node for name, node in every.items() if node not in UNPROMISED}
    headers = promised_headers(header, every)
    lines = {f'macro {name} = {text}' for name, text in macros(headers, compiler).items()}
    with tempfile.TemporaryDirectory() as folder, \
            open(compiled(header, exported, compiler, folder), 'rb') as file:
        for unit in ELFFile(file).get_dwarf_info().iter_CUs():
            lines.update(describe_types(unit, headers))
            for die in unit.get_top_DIE().iter_children():
                name = Types.name(die)
                if die.tag == 'DW_TAG_variable' and name.startswith('pointer_'):
                    function = name.removeprefix('pointer_')
                    lines.add(f'function {function}@{exported[function]}: {Types().spell(Types.target(die))}')
    experimental = experimental_prefixes(every)
    return sorted((line for line in lines if not f'{line.split()[1].rstrip(":").lower()}_'.startswith(experimental)),
                  key=natural)


def natural(line):
    """Numbers in lines sort by their value."""
    return [int(part) if part.isdigit() else part for part in re.split(r'(\d+)', line)]


def is_minor(line, now):
    """The minor number of the header's version counts additions."""
    found = re.match(r'macro (\w+_VERSION_MINOR) = (\d+)$', line)
    return bool(found) and any(int(number) >= int(found.group(2)) for other in now
                               for number in re.findall(rf'^macro {found.group(1)} = (\d+)$', other))


def is_growth(line, now):
    """A struct whose first field is its size may become larger."""
    found = re.match(r'struct (\w+): (\d+) bytes$', line)
    return bool(found) and f'struct {found.group(1)} @0: size_t size' in now and any(
        int(number) >= int(found.group(2)) for other in now
        for number in re.findall(rf'^struct {found.group(1)}: (\d+) bytes$', other))


def broken(stored, now):
    """The lines of the stored description that hold no more."""
    return [line for line in stored if line and not line.startswith('#') and line not in now and
            not is_minor(line, now) and not is_growth(line, now)]


def soname(library):
    with open(library, 'rb') as file:
        dynamic = ELFFile(file).get_section_by_name('.dynamic')
        return next(tag.soname for tag in dynamic.iter_tags('DT_SONAME'))


def check(stored, now):
    """Says what is broken. @return the exit status"""
    lines = stored.read_text(encoding='ascii').splitlines()
    gone = broken(lines, now)
    renamed = any(line.startswith('soname ') for line in gone)
    for line in gone:
        print(f'{stored.name}: promised by the last release, and no more: {line}')
    print(f'{stored.name}: {len(lines)} lines, {len(gone)} broken{", allowed by the new soname" * renamed}')
    return 1 if gone and not renamed else 0


def main():
    what, *rest = sys.argv[1:]
    stored = pathlib.Path(rest.pop(0)) if what == 'check' else None
    header, version_map, library, *compiler = rest
    lines = [f'soname {soname(library)}',
             *describe(pathlib.Path(header).resolve(), pathlib.Path(version_map), compiler)]
    if stored is not None:
        sys.exit(check(stored, set(lines)))
    print('# SPDX-License-Identifier: BSD-3-Clause', *lines, sep='\n')


if __name__ == '__main__':
    main()
