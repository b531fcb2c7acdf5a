"""Reads the reports with libraries of others: formats_test.py WRITE_SAMPLES FOLDER

JSON against the committed schema (jsonschema), JUnit XML (junitparser, lxml), Markdown (cmark-gfm, lxml).
Exits with 77 where one of them is not installed, except on a CI server (CI=true): there it fails.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

SKIPPED = 77
MISSING = []
try:
    import jsonschema
except ImportError:
    MISSING.append("jsonschema")
try:
    import junitparser
except ImportError:
    MISSING.append("junitparser")
try:
    from lxml import etree, html
except ImportError:
    MISSING.append("lxml")
if not shutil.which("cmark-gfm"):
    MISSING.append("cmark-gfm")

FOLDER = pathlib.Path()
SCHEMA = pathlib.Path(__file__).parent.parent / "attndiff-report-1.schema.json"
RUNS = ("passed", "failed", "empty")
ODD = "fixtures/odd </script><b>&\"'|`name.h5"


class Json(unittest.TestCase):
    def test_agrees_with_the_schema(self):
        schema = json.loads(SCHEMA.read_text())
        jsonschema.Draft202012Validator.check_schema(schema)
        validator = jsonschema.Draft202012Validator(schema)
        for run in RUNS:
            report = json.loads((FOLDER / f"{run}.json").read_text())
            self.assertEqual([e.message for e in validator.iter_errors(report)], [], run)

    def test_the_schema_refuses_what_is_wrong(self):
        validator = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text()))
        report = json.loads((FOLDER / "failed.json").read_text())
        report["fixtures"][0]["comparisons"][0]["verdict"] = "fine"
        self.assertFalse(validator.is_valid(report))


class Junit(unittest.TestCase):
    def test_counts_and_names(self):
        xml = junitparser.JUnitXml.fromfile(str(FOLDER / "failed.xml"))
        suites = list(xml)
        self.assertEqual([s.name for s in suites], [ODD, "fixtures/torn.h5", "attndiff"])
        suite = suites[0]
        self.assertEqual((suite.tests, suite.failures, suite.errors, suite.skipped), (80, 2, 0, 1))
        cases = {(c.classname, c.name): c for c in suite}
        self.assertEqual(len(cases), 80)
        case = cases[(ODD + ".cuda.free.layer 1", "o")]
        failure = case.result[0]
        self.assertIsInstance(failure, junitparser.Failure)
        self.assertEqual(failure.type, "fail")
        self.assertTrue(failure.message.startswith("step 1 (position 64): fail: 16 of 128 elements"))
        self.assertIn("attndiff replay --reference cpu --candidate cuda --mode free --layers 1 --steps 1 --stages o ",
                      failure.text)
        self.assertEqual(sum(isinstance(c.result[0], junitparser.Skipped) for c in suite if c.result), 1)
        for other in suites[1:]:
            self.assertTrue(all(isinstance(c.result[0], junitparser.Error) for c in other))

    def test_counts_agree_with_what_is_there(self):
        for run in RUNS:
            root = etree.parse(str(FOLDER / f"{run}.xml")).getroot()
            for suite in [root, *root.findall("testsuite")]:
                for attribute, path in (("tests", ".//testcase"), ("failures", ".//failure"), ("errors", ".//error"),
                                        ("skipped", ".//skipped")):
                    self.assertEqual(int(suite.get(attribute)), len(suite.findall(path)), (run, attribute))

    def test_properties(self):
        root = etree.parse(str(FOLDER / "failed.xml")).getroot()
        case = root.xpath("//testcase[failure][@name='o']")[0]
        properties = {p.get("name"): p.get("value") for p in case.iter("property")}
        self.assertEqual(properties["bound_ratio"], "117.25")
        self.assertEqual(properties["max_abs"], "1.84375")
        self.assertEqual(properties["steps"], "0,1,2")


def rendered(name):
    out = subprocess.run(["cmark-gfm", "--extension", "table", "--extension", "strikethrough", "--extension",
                          "autolink", "--unsafe", str(FOLDER / name)], check=True, capture_output=True)
    return html.fromstring("<html><body>" + out.stdout.decode() + "</body></html>")


class Markdown(unittest.TestCase):
    def test_a_failed_run(self):
        page = rendered("failed.md")
        self.assertEqual(page.xpath("//h3")[0].text_content(), "attndiff: FAILED")
        tables = page.xpath("//table")
        self.assertEqual(len(tables), 2)
        rows = tables[0].xpath(".//tbody/tr")
        self.assertEqual(len(rows), 3)
        self.assertEqual({len(r.xpath("td")) for r in rows}, {8})
        self.assertEqual(rows[0].xpath("td")[0].text_content().strip(), ODD)
        self.assertIn("fail (known)", rows[0].text_content())
        self.assertTrue(page.xpath("//pre/code")[0].text_content().startswith("attndiff replay --reference cpu"))
        self.assertEqual(len(page.xpath("//b")), 0, "nothing of a path is taken as markup")
        self.assertIn("cuda:7: no such GPU", page.text_content())

    def test_a_passed_run(self):
        page = rendered("passed.md")
        self.assertEqual(page.xpath("//h3")[0].text_content(), "attndiff: passed")
        self.assertEqual(len(page.xpath("//details//tbody/tr")), 20)

    def test_a_large_run_fits_a_comment(self):
        self.assertLess(len((FOLDER / "large.md").read_text()), 65536)

    def test_changes(self):
        page = rendered("changes.md")
        self.assertEqual(page.xpath("//h3")[0].text_content(), "attndiff compare: REGRESSED")
        self.assertEqual(len(page.xpath("//table//tbody/tr")), 1)


def main():
    global FOLDER
    FOLDER = pathlib.Path(sys.argv[2]).resolve()
    if MISSING:
        print("not installed: " + ", ".join(MISSING))
        sys.exit(1 if os.environ.get("CI") == "true" else SKIPPED)
    FOLDER.mkdir(parents=True, exist_ok=True)
    subprocess.run([sys.argv[1], str(FOLDER)], check=True)
    unittest.main(argv=sys.argv[:1], verbosity=2)


if __name__ == "__main__":
    main()
