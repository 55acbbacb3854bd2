# SPDX-License-Identifier: BSD-3-Clause
"""Checks a document against doc/result.schema.json: as much of JSON Schema as that file uses, so that a report
needs nothing but Python. A rule that is not known here is an error of the schema, never overlooked."""
import re

LARGEST_NUMBER = 1e18
NOTES = {"$schema", "title", "description", "$defs"}


class Refused(Exception):
    """The text says where and why, in one line."""


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


TYPES = {
    "object": lambda v: isinstance(v, dict),
    "array": lambda v: isinstance(v, list),
    "string": lambda v: isinstance(v, str),
    "boolean": lambda v: isinstance(v, bool),
    "null": lambda v: v is None,
    "number": is_number,
    "integer": lambda v: is_number(v) and v == int(v),
}


class Checker:
    def __init__(self, schema):
        self.schema = schema

    def check(self, value, rules=None, where="result"):
        rules = self.schema if rules is None else rules
        if is_number(value) and not abs(value) <= LARGEST_NUMBER:
            raise Refused(f"{where}: no such number")
        for rule, wanted in rules.items():
            if rule in NOTES:
                continue
            # "$ref" and "oneOf" become names of methods.
            getattr(self, "rule_" + rule.strip("$"))(value, wanted, where, rules)

    def rule_ref(self, value, wanted, where, _rules):
        self.check(value, self.schema["$defs"][wanted.rpartition("/")[2]], where)

    def rule_type(self, value, wanted, where, _rules):
        names = [wanted] if isinstance(wanted, str) else wanted
        if not any(TYPES[name](value) for name in names):
            raise Refused(f"{where}: not of type {' or '.join(names)}")

    def rule_const(self, value, wanted, where, _rules):
        if value != wanted or isinstance(value, bool) != isinstance(wanted, bool):
            raise Refused(f"{where}: not {wanted}")

    def rule_enum(self, value, wanted, where, _rules):
        if value not in wanted:
            raise Refused(f"{where}: none of {', '.join(map(str, wanted))}")

    def rule_required(self, value, wanted, where, _rules):
        missing = [name for name in wanted if isinstance(value, dict) and name not in value]
        if missing:
            raise Refused(f"{where}: {missing[0]} is missing")

    def rule_properties(self, value, wanted, where, _rules):
        for name, rules in wanted.items():
            if isinstance(value, dict) and name in value:
                self.check(value[name], rules, f"{where}.{name}")

    def rule_additionalProperties(self, value, wanted, where, rules):  # noqa: N802, the schema's name
        if not isinstance(value, dict):
            return
        for name in value.keys() - rules.get("properties", {}).keys():
            if wanted is False:
                raise Refused(f"{where}: {name[:40]!r} is not known")
            self.check(value[name], wanted, f"{where}.{name[:40]}")

    def rule_items(self, value, wanted, where, rules):
        if isinstance(value, list):
            for i, item in enumerate(value[len(rules.get("prefixItems", ())):]):
                self.check(item, wanted, f"{where}[{i}]")

    def rule_prefixItems(self, value, wanted, where, _rules):  # noqa: N802
        if isinstance(value, list):
            for i, (item, rules) in enumerate(zip(value, wanted)):
                self.check(item, rules, f"{where}[{i}]")

    def rule_minItems(self, value, wanted, where, _rules):  # noqa: N802
        if isinstance(value, list) and len(value) < wanted:
            raise Refused(f"{where}: fewer than {wanted} entries")

    def rule_maxItems(self, value, wanted, where, _rules):  # noqa: N802
        if isinstance(value, list) and len(value) > wanted:
            raise Refused(f"{where}: more than {wanted} entries")

    def rule_minimum(self, value, wanted, where, _rules):
        if is_number(value) and value < wanted:
            raise Refused(f"{where}: less than {wanted}")

    def rule_minLength(self, value, wanted, where, _rules):  # noqa: N802
        if isinstance(value, str) and len(value) < wanted:
            raise Refused(f"{where}: too short")

    def rule_pattern(self, value, wanted, where, _rules):
        if isinstance(value, str) and not re.search(wanted, value):
            raise Refused(f"{where}: not of the form that it should have")

    def rule_oneOf(self, value, wanted, where, _rules):  # noqa: N802
        """The alternatives of our schema differ in type, so the last refusal is the one that helps."""
        refusals = []
        for rules in wanted:
            try:
                self.check(value, rules, where)
            except Refused as refused:
                refusals.append(refused)
        if len(refusals) == len(wanted):
            raise refusals[-1]
        if len(refusals) + 1 != len(wanted):
            raise Refused(f"{where}: more than one form fits")
