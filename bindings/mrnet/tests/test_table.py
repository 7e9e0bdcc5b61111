"""Every function of the headers is in functions.table, with a program that really calls it."""

import pathlib
import re
import unittest

FOLDER = pathlib.Path(__file__).resolve().parent.parent
# What the layer itself needs of its classes, and tools do not call.
OWN = {
    "Network": {"engine"},
    "Stream": {"contents"},
    "Packet": {"contents"},
    "NetworkTopology": {"add", "remove", "move", "set_Port", "count", "leads_To", "add_ChildrenTo"},
}


def without_comments(text):
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    text = re.sub(r"^\s*#(?:.*\\\n)*.*$", "", text, flags=re.M)
    text = re.sub(r"template\s*<[^>]*>", " ", text)
    return re.sub(r"__attribute__\(\(.*?\)\)\)?", "", text)


def functions_of(text):
    """Names as `Class::function`, or `function` outside classes, public ones only."""
    found, scopes, statement = set(), [], ""
    for character in without_comments(text):
        if character == "{":
            head = re.search(r"\b(class|struct|union|enum|namespace)\b\s*(\w*)", statement)
            kind, name = head.groups() if head else ("linkage" if "extern" in statement else "body", "")
            if kind == "body":
                add_function(statement, scopes, found)
            scopes.append([kind, name, kind not in ("class", "body")])
            statement = ""
        elif character == "}":
            scopes.pop()
            statement = ""
        elif character == ":" and statement.strip() in ("public", "private", "protected"):
            scopes[-1][2] = statement.strip() == "public"
            statement = ""
        elif character == ";":
            add_function(statement, scopes, found)
            statement = ""
        else:
            statement += character
    return found


def add_function(statement, scopes, found):
    classes = [scope for scope in scopes if scope[0] in ("class", "struct")]
    is_public = all(scope[2] for scope in scopes)
    name = re.search(r"(operator\s*\S+?|~?\w+)\s*\(", statement)
    if not name or not is_public or "typedef" in statement or "friend" in statement:
        return
    name = name.group(1).replace(" ", "")
    if classes and name.lstrip("~") == classes[-1][1]:
        return  # constructors and destructors
    owner = "::".join(scope[1] for scope in classes)
    if classes and name in OWN.get(classes[-1][1], ()):
        return
    found.add(f"{owner}::{name}" if owner else name)


def wanted():
    """For each interface, the functions of its headers."""
    interfaces = {"c++": ["mrnet", "xplat"], "c": ["mrnet_lightweight", "xplat_lightweight"]}
    return {
        name: set().union(*(functions_of(header.read_text()) for folder in folders
                            for header in sorted((FOLDER / "include" / folder).glob("*.h"))))
        for name, folders in interfaces.items()
    }


def rows():
    for number, line in enumerate((FOLDER / "functions.table").read_text().splitlines(), 1):
        if line and not line.startswith("#"):
            words = line.split()
            assert len(words) == 3, f"functions.table:{number}: {line}"
            yield words


class Table(unittest.TestCase):
    def test_every_function_has_a_row_and_every_row_a_function(self):
        for interface, functions in wanted().items():
            listed = {function for kind, function, _ in rows() if kind == interface}
            self.assertEqual(functions - listed, set(), f"{interface}: no row")
            self.assertEqual(listed - functions, set(), f"{interface}: no such function")

    def test_every_program_names_its_functions(self):
        for _, function, program in rows():
            folder = "tests/headers" if "/" in program else "tests/programs"
            text = (FOLDER / folder / program).read_text()
            text += "".join(path.read_text() for path in (FOLDER / "tests/programs").glob("answer.hpp")
                            if '"answer.hpp"' in text)
            name = function.rsplit("::", 1)[-1]
            pattern = {"operator[]": r"packet\[", "operator==": r"==", "operator!=": r"!=",
                       "operator()": r"ltnode\(\)"}.get(name, rf"\b(ROUND\({name[4:]},|{re.escape(name)}\s*\()")
            self.assertRegex(text, pattern, f"{program} does not name {function}")

    def test_names_are_read_from_headers(self):
        text = "class A { public: int f(int (*)(int)); private: void g(); }; void h(void);"
        self.assertEqual(functions_of(text), {"A::f", "h"})
        text = 'template <class T> class B { public: T f() { g(); return t; } }; extern "C" { void h(); }'
        self.assertEqual(functions_of(text), {"B::f", "h"})


if __name__ == "__main__":
    unittest.main()
