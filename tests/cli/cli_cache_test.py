"""The cache from outside, and the test plan of pytorch#165474, in fresh processes."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

LYO = os.path.abspath(os.environ["LYO"])
CASES = pathlib.Path(os.environ["CASES"])
SEED = CASES / "seed_mlp" / "model.pt2"
OTHER = CASES / "double_mlp" / "model.pt2"


class CacheCommands(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.dir)
        self.cache = self.dir / "cache"

    def environment(self, **more):
        return {**os.environ, "LYO_CACHE": str(self.cache), **more}

    def lyo(self, *arguments, status=0, **more):
        result = subprocess.run([LYO, *map(str, arguments)], env=self.environment(**more), stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, timeout=120)
        self.assertEqual(result.returncode, status, f"{arguments}\n{result.stdout}\n{result.stderr}")
        return result

    def compile(self, name, model=SEED, *more):
        result = self.lyo("compile", model, "-o", self.dir / name, *more)
        return result.stdout.rsplit("cache: ", 1)[1].strip()

    def stat(self):
        return json.loads(self.lyo("cache", "stat", "--json").stdout)

    def entries(self):
        return [p for p in (self.cache / "v1" / "entries").rglob("*") if p.is_file()]

    def test_the_second_compile_is_a_hit_with_the_same_bytes(self):
        self.assertEqual(self.compile("1.lyo"), "miss")
        self.assertEqual(self.compile("2.lyo"), "hit")
        self.assertEqual(self.compile("3.lyo", SEED, "--cache", "none"), "off")
        first = (self.dir / "1.lyo").read_bytes()
        self.assertEqual((self.dir / "2.lyo").read_bytes(), first)
        self.assertEqual((self.dir / "3.lyo").read_bytes(), first)
        stat = self.stat()
        self.assertEqual((stat["makes"], stat["hits"], stat["misses"], stat["entries"]), (1, 1, 1, 1))

    def test_the_key_knows_no_paths_and_no_times(self):
        self.compile("1.lyo")
        moved = self.dir / "elsewhere" / "renamed.pt2"
        moved.parent.mkdir()
        shutil.copyfile(SEED, moved)
        os.utime(moved, (1, 1))
        self.assertEqual(self.compile("2.lyo", moved), "hit")

    def test_the_plan_of_pytorch_165474(self):
        """Compile, save, load without compiling, call, compare with eager; twice, each step a fresh process."""
        saved = []
        for expected in ("miss", "hit"):
            self.assertEqual(self.compile("model.lyo"), expected)
            # `check` and `roundtrip` load with no compiler at hand: the artifact is all they have.
            self.assertIn("pass", self.lyo("check", self.dir / "model.lyo", SEED.parent / "io.safetensors").stdout)
            self.assertIn("identical", self.lyo("roundtrip", self.dir / "model.lyo", "-o", self.dir / "again.lyo").stdout)
            saved.append((self.dir / "again.lyo").read_bytes())
            self.assertEqual(saved[-1], (self.dir / "model.lyo").read_bytes())
        self.assertEqual(saved[0], saved[1])
        self.assertEqual(self.stat()["makes"], 1)

    def test_sixteen_compile_at_once_and_one_compiles(self):
        model = CASES / "bert_tiny" / "model.pt2"
        running = [subprocess.Popen([LYO, "compile", model, "-o", self.dir / f"{i}.lyo"], env=self.environment(),
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for i in range(16)]
        said = [p.communicate(timeout=120) for p in running]
        self.assertEqual([p.returncode for p in running], [0] * 16, said)
        self.assertEqual(sum("cache: miss" in out for out, _ in said), 1)
        self.assertEqual(len({(self.dir / f"{i}.lyo").read_bytes() for i in range(16)}), 1)
        self.assertEqual(self.stat()["makes"], 1)

    def test_one_that_is_killed_holds_nobody_up(self):
        model = CASES / "bert_tiny" / "model.pt2"
        for round in range(10):
            running = [subprocess.Popen([LYO, "compile", model, "-o", self.dir / f"{i}.lyo"], env=self.environment(),
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for i in range(4)]
            time.sleep(0.003 * round)
            running[round % 4].send_signal(signal.SIGKILL)
            for i, p in enumerate(running):
                p.communicate(timeout=120)
                if i != round % 4:
                    self.assertEqual(p.returncode, 0)
            shutil.rmtree(self.cache / "v1" / "entries", ignore_errors=True)
        self.compile("last.lyo", model)
        self.lyo("cache", "gc")
        self.assertEqual([p for part in ("tmp", "locks") for p in (self.cache / "v1" / part).iterdir()], [])

    def test_a_damaged_entry_is_moved_aside_and_compiled_again(self):
        self.compile("1.lyo")
        (entry,) = self.entries()
        data = bytearray(entry.read_bytes())
        data[1000] ^= 1
        entry.write_bytes(data)
        result = self.lyo("compile", SEED, "-o", self.dir / "2.lyo")
        self.assertIn("cache: miss", result.stdout)
        self.assertIn("warning", result.stderr)
        self.assertIn("moved to", result.stderr)
        self.assertEqual((self.dir / "1.lyo").read_bytes(), (self.dir / "2.lyo").read_bytes())
        self.assertEqual((self.stat()["corrupt"], self.stat()["damaged"]), (1, 1))
        self.assertEqual(self.compile("3.lyo"), "hit")

    def test_a_folder_that_cannot_be_used_costs_a_warning(self):
        self.cache.write_text("a file")
        result = self.lyo("compile", SEED, "-o", self.dir / "1.lyo")
        self.assertIn("cache: miss", result.stdout)
        self.assertIn("warning", result.stderr)
        self.assertEqual(self.lyo("--version").returncode, 0)
        quiet = self.lyo("compile", SEED, "-o", self.dir / "2.lyo", "--quiet")
        self.assertEqual(quiet.stderr, "")

    def test_a_full_disk_costs_a_warning(self):
        if os.geteuid() != 0 or shutil.which("mount") is None:
            self.skipTest("needs to mount a tmpfs")
        self.cache.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", self.cache], stderr=subprocess.DEVNULL).returncode:
            self.skipTest("tmpfs cannot be mounted here")
        try:
            result = self.lyo("compile", SEED, "-o", self.dir / "1.lyo")
            self.assertIn("cache: miss", result.stdout)
            self.assertIn("No space left", result.stderr)
            self.assertEqual(self.entries(), [])
            leftovers = self.cache / "v1" / "tmp"
            self.assertEqual(list(leftovers.iterdir()) if leftovers.exists() else [], [])
        finally:
            subprocess.run(["umount", self.cache], check=True)

    def test_commands(self):
        self.compile("1.lyo")
        self.compile("2.lyo", OTHER)
        self.assertEqual(self.lyo("cache", "path").stdout, f"{self.cache}\n")
        listed = json.loads(self.lyo("cache", "ls", "--json").stdout)
        self.assertEqual(len(listed), 2)
        self.assertEqual(listed[0]["parts"]["targets"], "cpu")
        self.assertEqual(sorted(e["key"] for e in listed), [e["key"] for e in listed])
        why = json.loads(self.lyo("cache", "why", SEED, "--json").stdout)
        self.assertTrue(why["hit"])
        self.lyo("cache", "get", why["key"][:10], "-o", self.dir / "got.lyo")
        self.assertEqual((self.dir / "got.lyo").read_bytes(), (self.dir / "1.lyo").read_bytes())
        self.lyo("cache", "rm", why["key"])
        self.lyo("cache", "rm", why["key"], status=1)
        self.lyo("cache", "get", why["key"], "-o", self.dir / "none.lyo", status=1)
        self.assertFalse((self.dir / "none.lyo").exists())
        missing = json.loads(self.lyo("cache", "why", SEED, "--json", status=1).stdout)
        self.assertEqual({d["part"] for d in missing["differences"]}, {"code", "constants"})
        put = self.lyo("cache", "put", SEED, self.dir / "1.lyo").stdout.strip()
        self.assertEqual(put, why["key"])
        self.assertEqual(self.compile("3.lyo"), "hit")
        self.lyo("cache", "rm", "", status=2)
        self.lyo("cache", "rm", "zz", status=2)
        self.lyo("cache", status=2)
        self.lyo("cache", "gc", "--max-bytes", 0)
        self.assertEqual(self.entries(), [])
        self.assertIn("the cache is empty", self.lyo("cache", "why", SEED, status=1).stdout)

    def test_why_names_what_differs(self):
        self.compile("1.lyo")
        said = self.lyo("cache", "why", SEED, "--no-debug", status=1).stdout
        self.assertIn("options: expected no-debug, the entry has debug", said)
        self.assertNotIn("constants", said)

    def test_an_archive_fills_another_cache(self):
        self.compile("1.lyo")
        self.compile("2.lyo", OTHER)
        archive = self.dir / "all.lyoa"
        self.lyo("cache", "push", archive)
        other = self.dir / "other"
        self.assertIn("2 entries", self.lyo("cache", "pull", archive, LYO_CACHE=str(other)).stdout)
        self.assertIn("0 entries", self.lyo("cache", "pull", archive, LYO_CACHE=str(other)).stdout)
        result = self.lyo("compile", SEED, "-o", self.dir / "3.lyo", LYO_CACHE=str(other))
        self.assertIn("cache: hit", result.stdout)
        again = self.dir / "again.lyoa"
        self.lyo("cache", "push", again, LYO_CACHE=str(other))
        self.assertEqual(again.read_bytes(), archive.read_bytes())
        data = bytearray(archive.read_bytes())
        data[len(data) - 200] ^= 4
        archive.write_bytes(data)
        third = self.dir / "third"
        self.lyo("cache", "pull", archive, status=1, LYO_CACHE=str(third))
        self.assertFalse(third.exists(), "nothing is taken from a damaged archive")

    def test_counters_for_prometheus(self):
        self.compile("1.lyo")
        self.lyo("cache", "stat", "--prometheus", self.dir / "lyo.prom")
        text = (self.dir / "lyo.prom").read_text()
        self.assertIn("# TYPE lyo_cache_makes_total counter\nlyo_cache_makes_total 1\n", text)
        for line in text.splitlines():
            self.assertRegex(line, r"^(# (HELP|TYPE) lyo_cache_\w+ .+|lyo_cache_\w+ \d+)$")

    def test_addresses(self):
        for wrong in ("http://somewhere", "a,b", ",", "none,a"):
            result = self.lyo("compile", SEED, "-o", self.dir / "1.lyo", "--cache", wrong, status=2)
            self.assertEqual(len(result.stderr.splitlines()), 1)
        self.lyo("cache", "ls", "--cache", "none", status=2)
        self.lyo("compile", SEED, "-o", self.dir / "1.lyo", status=2, LYO_CACHE_MAX_BYTES="many")
        home = self.dir / "home"
        result = subprocess.run([LYO, "cache", "path"], env={"HOME": str(home)}, stdout=subprocess.PIPE, text=True)
        self.assertEqual(result.stdout, f"{home}/.cache/lyo\n")
        result = subprocess.run([LYO, "compile", SEED, "-o", self.dir / "1.lyo"], env={}, stdout=subprocess.PIPE, text=True,
                                stderr=subprocess.PIPE)
        self.assertEqual(result.returncode, 0, "without a home there is no cache, and no failure: " + result.stderr)

    def test_the_limit_is_kept(self):
        self.compile("1.lyo")
        size = self.stat()["bytes"]
        for case in sorted(CASES.iterdir()):
            if (case / "model.pt2").exists():
                self.lyo("compile", case / "model.pt2", "-o", self.dir / "x.lyo", LYO_CACHE_MAX_BYTES=str(20 * size))
        self.assertLessEqual(self.stat()["bytes"], 20 * size)
        self.assertGreater(self.stat()["evictions"], 0)


if __name__ == "__main__":
    unittest.main()
