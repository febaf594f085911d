"""The program from outside: what it prints, how it exits, and that failures leave nothing behind."""

import json
import os
import pathlib
import resource
import shutil
import stat
import struct
import subprocess
import tempfile
import time
import unittest

LYO = os.path.abspath(os.environ["LYO"])
CASES = pathlib.Path(os.environ["CASES"])
SEED = CASES / "seed_mlp"


def lyo(*arguments, env=None, program=LYO, stdout=subprocess.PIPE, **more):
    environment = dict(os.environ, LYO_CACHE="none", **(env or {}))
    return subprocess.run([program, *map(str, arguments)], env=environment, stdout=stdout, stderr=subprocess.PIPE, text=True,
                          timeout=120, **more)


def read_safetensors(path):
    data = pathlib.Path(path).read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    return {k: (v["dtype"], v["shape"], data[8 + length + v["data_offsets"][0]:8 + length + v["data_offsets"][1]])
            for k, v in header.items() if k != "__metadata__"}


def write_safetensors(path, tensors):
    header, body = {}, b""
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + body)


class Program(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.dir)
        self.artifact = self.dir / "seed.lyo"
        self.compiled = lyo("compile", SEED / "model.pt2", "-o", self.artifact)
        self.assertEqual(self.compiled.returncode, 0, self.compiled.stderr)

    def expect(self, result, status, *parts):
        self.assertEqual(result.returncode, status, f"{result.stdout}\n{result.stderr}")
        for part in parts:
            self.assertIn(str(part), (result.stdout or "") + result.stderr)

    def test_compile_ends_with_id_size_targets_and_cache(self):
        size = self.artifact.stat().st_size
        self.assertRegex(self.compiled.stdout, rf"^[0-9a-f]{{64}} {size} bytes cpu cache: off\n$")
        self.assertLess(size, 8 << 10)

    def test_compile_gives_the_same_bytes_in_other_folders_locales_and_for_other_users(self):
        elsewhere = self.dir / "elsewhere" / "deeper"
        elsewhere.mkdir(parents=True)
        shutil.copy(SEED / "model.pt2", elsewhere / "renamed.pt2")
        env = {"LC_ALL": "de_DE.UTF-8", "LANG": "tr_TR.UTF-8", "HOME": str(elsewhere), "USER": "somebody", "LOGNAME": "somebody",
               "TZ": "Pacific/Auckland", "TMPDIR": str(elsewhere)}
        result = lyo("compile", "renamed.pt2", "-o", "other.lyo", env=env, cwd=elsewhere)
        self.expect(result, 0)
        self.assertEqual((elsewhere / "other.lyo").read_bytes(), self.artifact.read_bytes())

    def test_check_passes_fails_and_says_by_how_much(self):
        io = SEED / "io.safetensors"
        self.expect(lyo("check", self.artifact, io, "--rtol", "1e-4"), 0, "max abs error", ": pass")
        tensors = read_safetensors(io)
        dtype, shape, data = tensors["output.0"]
        tensors["output.0"] = (dtype, shape, struct.pack("<f", 12345.0) + data[4:])
        wrong = self.dir / "wrong.safetensors"
        write_safetensors(wrong, tensors)
        self.expect(lyo("check", self.artifact, wrong), 1, ": fail", "1 of", "the first at 0")
        report = json.loads(lyo("check", self.artifact, wrong, "--json").stdout)
        self.assertFalse(report["pass"])
        self.assertEqual(report["outputs"][0]["wrong"], 1)
        del tensors["input.0"]
        write_safetensors(wrong, tensors)
        self.expect(lyo("check", self.artifact, wrong), 1, "holds no input.0")
        tensors = read_safetensors(io)
        tensors["input.0"] = (tensors["input.0"][0], [4], tensors["input.0"][2])
        write_safetensors(wrong, tensors)
        self.expect(lyo("check", self.artifact, wrong), 1, "rank: expected 2, got 1")

    def test_check_refuses_answers_of_another_kind_and_names_it_does_not_know(self):
        wrong = self.dir / "wrong.safetensors"
        good = read_safetensors(SEED / "io.safetensors")
        dtype, shape, data = good["output.0"]
        for changes, message in (({"output.0": ("I32", shape, data)}, "dtype: expected i32, got f32: fail"),
                                 ({"output.0": (dtype, [16], data)}, "shape: expected [16], got [2, 8]: fail"),
                                 ({"output.1": good["output.0"]}, "outputs: expected 1, got one named output.1"),
                                 ({"input.7": good["input.0"]}, "inputs: expected 1, got one named input.7"),
                                 ({"input.00": good["input.0"]}, "is there twice"),
                                 ({"answer": good["output.0"]}, "expected input.N or output.N, got answer")):
            write_safetensors(wrong, {**good, **changes})
            self.expect(lyo("check", self.artifact, wrong), 1, message)
        write_safetensors(wrong, {"input.0": good["input.0"]})
        self.expect(lyo("check", self.artifact, wrong), 1, "holds no output to compare with")

    def test_check_takes_nan_for_nan_and_for_nothing_else(self):
        wrong = self.dir / "wrong.safetensors"
        tensors = read_safetensors(SEED / "io.safetensors")
        dtype, shape, data = tensors["output.0"]
        tensors["output.0"] = (dtype, shape, struct.pack("<f", float("nan")) + data[4:])
        write_safetensors(wrong, tensors)
        self.expect(lyo("check", self.artifact, wrong, "--rtol", "1e30", "--atol", "1e30"), 1, "1 of", "the first at 0", ": fail")
        dtype, shape, data = tensors["input.0"]
        tensors["input.0"] = (dtype, shape, struct.pack("<f", float("nan")) * (len(data) // 4))
        dtype, shape, data = tensors["output.0"]
        tensors["output.0"] = (dtype, shape, struct.pack("<f", float("nan")) * (len(data) // 4))
        write_safetensors(wrong, tensors)
        # relu keeps NaN, so every output is one.
        self.expect(lyo("check", self.artifact, wrong), 0, "max abs error 0", ": pass")

    def test_check_lays_inputs_out_with_given_strides(self):
        artifact = self.dir / "n.lyo"
        case = CASES / "noncontiguous_input"
        self.expect(lyo("compile", case / "model.pt2", "-o", artifact), 0)
        for strides in ("0=1,5", "0=100,7", "0=6,1"):
            self.expect(lyo("check", artifact, case / "io.safetensors", "--rtol", "1e-4", "--strides", strides), 0, "pass")
        self.expect(lyo("check", artifact, case / "io.safetensors", "--strides", "0=1"), 2, "--strides")

    def test_run_reads_and_writes_both_formats(self):
        out = self.dir / "out.safetensors"
        self.expect(lyo("run", self.artifact, "--in", SEED / "io.safetensors", "--out", out), 0)
        (made,) = read_safetensors(out).values()
        recorded = read_safetensors(SEED / "io.safetensors")["output.0"]
        self.assertEqual(made[:2], recorded[:2])
        npy = self.dir / "x.npy"
        header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }"
        header += b" " * (118 - len(header) - 1) + b"\n"
        npy.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + read_safetensors(SEED / "io.safetensors")["input.0"][2])
        self.expect(lyo("run", self.artifact, "--in", f"x={npy}", "--out", self.dir / "y.npy"), 0)
        self.assertEqual((self.dir / "y.npy").read_bytes()[-64:], made[2])
        self.expect(lyo("run", self.artifact, "--in", f"z={npy}", "--out", out), 2, "the inputs are x")
        self.expect(lyo("run", self.artifact, "--in", f"x={npy}", "--out", self.dir / "y.txt"), 2, "--out")
        for malformed in ("x=", f"={npy}"):
            self.expect(lyo("run", self.artifact, "--in", malformed, "--out", self.dir / "z.npy"), 2, "NAME=FILE.npy, got")
        self.expect(lyo("run", self.artifact, "--in", f"x={npy}", "--in", f"x={npy}", "--out", self.dir / "z.npy"), 2, "twice")
        self.expect(lyo("run", self.artifact, "--out", self.dir / "z.npy"), 2, "input x is not given")
        self.assertFalse((self.dir / "z.npy").exists())

    def test_roundtrip_is_silent_under_cmp(self):
        copy = self.dir / "copy.lyo"
        self.expect(lyo("roundtrip", self.artifact, "-o", copy), 0, "identical", "3 calls")
        self.assertEqual(copy.read_bytes(), self.artifact.read_bytes())
        report = json.loads(lyo("roundtrip", self.artifact, "--json").stdout)
        self.assertTrue(report["serialized_identical"] and report["encoded_identical"])

    def test_verify_names_the_place_of_any_change(self):
        self.expect(lyo("verify", self.artifact), 0, "valid", "every digest")
        self.assertIn("digests", json.loads(lyo("verify", self.artifact, "--json").stdout)["checked"])
        good = self.artifact.read_bytes()
        bad = self.dir / "bad.lyo"
        for at in range(0, len(good), max(1, len(good) // 100)):
            bad.write_bytes(good[:at] + bytes([good[at] ^ 0x40]) + good[at + 1:])
            result = lyo("verify", bad)
            self.expect(result, 1, bad)
            self.assertRegex(result.stderr, r"^lyo: .*: .+\n$")
            bad.write_bytes(good[:at])
            self.expect(lyo("verify", bad), 1, bad)
        self.expect(lyo("verify", self.artifact, "--pubkey", "k"), 2, "--pubkey")

    def test_inspect_prints_text_json_and_a_page(self):
        self.expect(lyo("inspect", self.artifact), 0, "function forward", "x: f32[2, 2]", "linear1.weight")
        report = json.loads(lyo("inspect", self.artifact, "--json").stdout)
        self.assertEqual(report["manifest"]["targets"], ["cpu"])
        page = self.dir / "page.html"
        self.expect(lyo("inspect", self.artifact, "--html", page), 0)
        self.assertIn("linear1.weight", page.read_text())
        named = self.dir / "<script>alert(1)&'\".lyo"
        shutil.copy(self.artifact, named)
        self.expect(lyo("inspect", named, "--html", page), 0)
        self.assertNotIn("<script", page.read_text())
        self.assertIn("&lt;script&gt;alert(1)&amp;&#39;&quot;.lyo", page.read_text())

    def test_diff_says_what_differs(self):
        self.expect(lyo("diff", self.artifact, self.artifact), 0, "identical")
        other = self.dir / "other.lyo"
        self.expect(lyo("compile", SEED / "model.pt2", "-o", other, "--no-debug"), 0)
        self.expect(lyo("diff", self.artifact, other), 1, "id: ", "debug")
        self.assertFalse(json.loads(lyo("diff", self.artifact, other, "--json").stdout)["identical"])

    def test_bench_and_doctor_answer_programs(self):
        times = json.loads(lyo("bench", self.artifact, "--seconds", "0.01", "--json").stdout)["times_ns"]
        self.assertEqual([t["name"] for t in times], ["open, validate, hydrate", "call", "call into given outputs", "serialize"])
        for t in times:
            self.assertTrue(0 < t["p10"] <= t["median"] <= t["p90"], t)
        self.expect(lyo("doctor"), 0, "cpu kernels: ", "onednn: ", "cuda")
        self.expect(lyo("doctor", self.dir / "missing"), 3, self.dir / "missing")
        self.expect(lyo("doctor", SEED / "model.pt2"), 1, "not a lyo artifact")
        self.expect(lyo("doctor", self.artifact), 0, "on cpu: runs, with image cpu")
        report = json.loads(lyo("doctor", self.artifact, "--json").stdout)
        self.assertTrue(report["artifact"]["cpu"]["runs"])
        ops = json.loads(lyo("doctor", "--ops", "--json").stdout)
        self.assertIn("softmax.int", [op["name"] for op in ops])

    def test_wrong_usage_is_status_2(self):
        for arguments in ([], ["frobnicate"], ["compile"], ["compile", SEED / "model.pt2"], ["check", self.artifact],
                          ["compile", SEED / "model.pt2", "-o", self.dir / "x", "--target", "abacus"],
                          ["compile", SEED / "model.pt2", "-o", self.dir / "x", "--cache", "a,b"],
                          ["roundtrip", self.artifact, "--device", "abacus"], ["verify", self.artifact, "--frob"],
                          ["check", self.artifact, SEED / "io.safetensors", "--rtol", "-1"],
                          ["check", self.artifact, SEED / "io.safetensors", "--atol", "nan"],
                          ["check", self.artifact, SEED / "io.safetensors", "--rtol", "inf"],
                          ["bench", self.artifact, "--seconds", "0"], ["inspect", self.artifact, "and", "more"]):
            result = lyo(*arguments)
            self.expect(result, 2)
            self.assertRegex(result.stderr, r"^lyo: [^\n]+\n$")
            self.assertEqual(result.stdout, "")
        self.assertFalse((self.dir / "x").exists())
        for arguments in (["--help"], ["--version"], ["compile", "--help"]):
            self.expect(lyo(*arguments), 0)
        for command in ("compile", "check", "run", "roundtrip", "verify", "inspect", "diff", "bench", "doctor"):
            self.expect(lyo(command, "--help"), 0, f"Example: lyo {command} ")

    def test_what_the_machine_cannot_do_is_status_3_and_names_the_file(self):
        missing = self.dir / "missing"
        for arguments in (["verify", missing], ["verify", self.dir], ["compile", missing, "-o", self.dir / "x"],
                          ["check", self.artifact, missing], ["run", self.artifact, "--in", missing, "--out", self.dir / "x.npy"]):
            self.expect(lyo(*arguments), 3, missing if missing in arguments else self.dir)
        nowhere = self.dir / "no" / "folder" / "x.lyo"
        self.expect(lyo("compile", SEED / "model.pt2", "-o", nowhere), 3, nowhere)
        self.expect(lyo("roundtrip", self.artifact, "--device", "cuda:63"), 3)
        if os.path.exists("/dev/full"):
            with open("/dev/full", "w") as full:
                self.expect(lyo("inspect", self.artifact, stdout=full), 3, "standard output")

    def test_a_pipe_is_no_file_to_read(self):
        pipe = self.dir / "pipe"
        os.mkfifo(pipe)
        for arguments in (["verify", pipe], ["inspect", pipe], ["diff", self.artifact, pipe], ["check", self.artifact, pipe],
                          ["compile", pipe, "-o", self.dir / "x"],
                          ["run", self.artifact, "--in", pipe, "--out", self.dir / "x.npy"]):
            self.expect(lyo(*arguments), 3, pipe, "not a regular file")

    def test_what_is_not_a_regular_file_is_never_replaced(self):
        pipe, link, folder = self.dir / "pipe.safetensors", self.dir / "link.safetensors", self.dir / "folder.safetensors"
        os.mkfifo(pipe)
        link.symlink_to(pipe)
        folder.mkdir()
        for out in (pipe, link, folder):
            for arguments in (["compile", SEED / "model.pt2", "-o", out], ["roundtrip", self.artifact, "-o", out],
                              ["inspect", self.artifact, "--html", out],
                              ["run", self.artifact, "--in", SEED / "io.safetensors", "--out", out]):
                self.expect(lyo(*arguments), 3, out, "not a regular file")
        self.assertTrue(stat.S_ISFIFO(pipe.lstat().st_mode) and link.is_symlink() and folder.is_dir())

    def test_a_full_disk_and_a_folder_that_may_not_be_written_are_status_3_and_leave_nothing(self):
        target = self.dir / "target"
        target.mkdir()
        old = target / "old.lyo"
        old.write_text("old")
        # As on a full disk, writing fails half-way; Python ignores the signal that comes with this limit.
        result = lyo("compile", SEED / "model.pt2", "-o", old, restore_signals=False,
                     preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024)))
        self.expect(result, 3, old, "cannot write")
        self.assertEqual((result.stdout, old.read_text()), ("", "old"))
        # Nothing is refused to root: the program runs as nobody then, from where nobody can read it.
        self.dir.chmod(0o755)
        target.chmod(0o555)
        program, model = shutil.copy(LYO, self.dir / "lyo"), shutil.copy(SEED / "model.pt2", self.dir / "model.pt2")
        nobody = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
        result = lyo("compile", model, "-o", target / "new.lyo", program=program, cwd="/", **nobody)
        self.expect(result, 3, target / "new.lyo", "Permission denied")
        self.assertEqual([p.name for p in target.iterdir()], ["old.lyo"])

    def test_a_failure_leaves_the_old_file_and_no_other(self):
        target = self.dir / "kept"
        target.mkdir()
        (target / "out.lyo").write_text("old")
        broken = self.dir / "broken.pt2"
        broken.write_bytes((SEED / "model.pt2").read_bytes()[:-100])
        self.expect(lyo("compile", broken, "-o", target / "out.lyo"), 1, broken)
        self.assertEqual([p.name for p in target.iterdir()], ["out.lyo"])
        self.assertEqual((target / "out.lyo").read_text(), "old")

    def test_a_killed_compile_leaves_the_old_file_or_the_new_one(self):
        target = self.dir / "target"
        target.mkdir()
        out = target / "out.lyo"
        new = self.artifact.read_bytes()
        for i in range(40):
            out.write_bytes(b"old")
            process = subprocess.Popen([LYO, "compile", SEED / "model.pt2", "-o", out], stdout=subprocess.DEVNULL)
            time.sleep(i * 0.0004)
            process.kill()
            process.wait()
            self.assertIn(out.read_bytes(), (b"old", new))

    def test_processes_that_write_one_file_do_not_disturb_one_another(self):
        out = self.dir / "same.lyo"
        processes = [subprocess.Popen([LYO, "compile", SEED / "model.pt2", "-o", out], stdout=subprocess.DEVNULL) for _ in range(16)]
        self.assertEqual({p.wait() for p in processes}, {0})
        self.assertEqual(out.read_bytes(), self.artifact.read_bytes())
        self.assertEqual([p.name for p in self.dir.iterdir() if p.name.endswith(".tmp")], [])

    def test_a_model_that_cannot_be_compiled_is_status_1(self):
        text = self.dir / "text.pt2"
        text.write_text("hello")
        self.expect(lyo("compile", text, "-o", self.dir / "x"), 1, "zip")
        self.expect(lyo("verify", SEED / "model.pt2"), 1, "not a lyo artifact")

    def test_quiet_leaves_results_only(self):
        out = self.dir / "out.npy"
        result = lyo("run", self.artifact, "--in", SEED / "io.safetensors", "--out", out, "--quiet")
        self.expect(result, 0)
        self.assertEqual(result.stdout + result.stderr, "")


if __name__ == "__main__":
    unittest.main()
