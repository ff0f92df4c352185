# SPDX-License-Identifier: Apache-2.0
"""Tests of tools/check_docs: each kind of wrong name is found in a small tree, and a correct page
has none. Run by tools/check_docs --self-test."""
import importlib.machinery
import importlib.util
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
loader = importlib.machinery.SourceFileLoader("check_docs", str(HERE / "check_docs"))
spec = importlib.util.spec_from_loader("check_docs", loader)
docs = importlib.util.module_from_spec(spec)
loader.exec_module(docs)

FILES = {
    "runtime/things.def": 'THING(a, "text, with commas", 1)\nTHING(b, F(1, 2), 2)\n',
    "runtime/things.c": "int xm_thing_find(void) { return XM_THING; }\n",
}


class CheckDocs(unittest.TestCase):
    def found(self, page, name="add_a_thing.md", places=()):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            for path, text in {**FILES, "docs/" + name: page}.items():
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(text)
            (root / "build").mkdir()
            (root / "build/made.c").write_text("int xm_made;\n")
            before, docs.PLACES = docs.PLACES, list(places)
            try:
                return docs.check(str(root))
            finally:
                docs.PLACES = before

    def expect(self, words, page, **more):
        found = self.found(page, **more)
        self.assertEqual(len(found), 1, found)
        self.assertIn(words, found[0])

    def test_a_right_page(self):
        self.assertEqual(self.found(
            "# A\n`things.def`, `runtime/things.c`, `runtime/*.def`, `runtime/<name>.c`, `runtime/`;\n"
            "`xm_thing_find`, `xm_thing_find()`, `XM_THING`, `XM_DEBUG=help`, `a b`\n"
            "[here](#a), [there](https://example.org/x.c)\n\n    THING(c, G(1,\n          2), 3)\n"), [])

    def test_files(self):
        self.expect("there is no file 'things.h'", "`things.h`")
        self.expect("there is no file 'plugin/things.c'", "`plugin/things.c`")
        self.expect("there is no file 'plugin/<name>.c'", "`plugin/<name>.c`")
        self.expect("there is no file 'runtime/rooms/'", "`runtime/rooms/`")

    def test_names(self):
        self.expect("no source has the name 'xm_thing_lose'", "`xm_thing_lose()`")
        self.expect("no source has the name 'XM_THINGS'", "`enum XM_THINGS`")
        self.expect("no source has the name 'xm_made'", "`xm_made`")

    def test_names_of_examples(self):
        self.assertEqual(self.found(
            "`xm_toy`, `toy.c`\n<!-- file: toy.c -->\n```c\nint xm_toy;\n```\n"), [])

    def test_rows(self):
        self.expect("row THING(…) has 2 arguments", "    THING(c, 1)\n")
        self.expect("row ROOM(…) has 1 arguments, those of the tree have []", "    ROOM(c)\n")

    def test_links(self):
        self.expect("there is no page 'b.md'", "[b](b.md)")
        self.expect("there is no heading '#c'", "# A\n[c](#c)")

    def test_places(self):
        place = ("add_a_thing.md", "THING(", "runtime/things.def")
        self.assertEqual(self.found("`THING` in `things.def`", places=[place]), [])
        self.expect("the page no longer names", "`things.def`", places=[place])
        self.expect("'runtime/things.c' has no 'THING('", "`THING` in `things.c`",
                    places=[place[:2] + ("runtime/things.c",)])


if __name__ == "__main__":
    unittest.main()
