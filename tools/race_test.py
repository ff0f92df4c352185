# SPDX-License-Identifier: Apache-2.0
"""Tests of tools/race with programs that print made-up times. Run by tools/race --self-test."""
import json
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

RACE = Path(__file__).resolve().parent / 'race'

# A program that prints the next of the given speeds for each test, and records its own command
# line.
PROGRAM = '''#!{python}
import json, sys
log = open({log!r}, 'a'); log.write(' '.join(sys.argv[1:]) + '\\n'); log.close()
turn = sum(1 for line in open({log!r}))
words = sys.argv
prompts = [int(x) for x in words[words.index('-p') + 1].split(',')]
speeds = {speeds!r}
if {code}:
    sys.stderr.write('loading\\nout of memory\\n')
    sys.exit({code})
print(json.dumps([{{'n_prompt': p, 'n_gen': 0, 'avg_ts': speeds[(turn - 1) % len(speeds)] * p}}
                  for p in prompts] + [{{'n_prompt': 0, 'n_gen': 8, 'avg_ts': speeds[0]}}]))
'''


class RaceTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix='race ')  # a space in every path
        self.addCleanup(self.folder.cleanup)

    def program(self, name, speeds, code=0):
        path = Path(self.folder.name) / name
        log = str(path) + '.log'
        path.write_text(PROGRAM.format(python=sys.executable, log=log, speeds=speeds, code=code))
        path.chmod(0o755)
        return f"'{path}'"

    def race(self, *words):
        return subprocess.run([sys.executable, str(RACE), *words], capture_output=True, text=True)

    def test_medians_in_turn(self):
        own, peer = self.program('own', [1, 9, 3]), self.program('peer', [2, 2, 2])
        slow = self.program('slow', [1, 1, 1])
        done = self.race('m.gguf', '-p', '16,64', '-n', '8', '-r', '3', '-t', '7', f'--xemoe={own}',
                         f'--peer=a={peer}', f'--peer=b={slow}')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.split('\n')[2:5], [
            '| pp16 | 48.0 | 32.0 | 16.0 | 1.50 |', '| pp64 | 192.0 | 128.0 | 64.0 | 1.50 |',
            '| tg8 | 1.0 | 2.0 | 1.0 | 0.50 |'])
        self.assertEqual([line.split(': ')[1] for line in done.stderr.split('\n') if line],
                         ['xemoe', 'a', 'b'] * 3)
        self.assertIn('bench -m m.gguf -p 16,64 -n 8 -r 1 -o json\n',
                      (Path(self.folder.name) / 'own.log').read_text())
        self.assertIn('-m m.gguf -p 16,64 -n 8 -r 1 -o json -t 7\n',
                      (Path(self.folder.name) / 'peer.log').read_text())

    def test_json(self):
        own, peer = self.program('own', [4]), self.program('peer', [2])
        done = self.race('m.gguf', '-p', '16', '-r', '2', '--json', f'--xemoe={own}',
                         f'--peer=a={peer}')
        test = json.loads(done.stdout)['tests'][0]
        self.assertEqual(test['ratio'], 2)
        self.assertEqual(test['programs']['a'], {'median': 32, 'samples': [32, 32]})

    def test_failures_have_a_sentence(self):
        own = f"--xemoe={self.program('own', [1])}"
        bad, absent = self.program('bad', [1], code=3), Path(self.folder.name) / 'absent'
        for words, code, says in (
                (['m.gguf', own, f'--peer=a={bad}'], 1, 'ended with 3: out of memory'),
                (['m.gguf', own, f"--peer=a='{absent}'"], 1,
                 f"race: there is no program '{absent}' for a: install it, or name another with "
                 '--peer=a=COMMAND'),
                (['m.gguf', '--xemoe=nonsense', '--peer=a=echo'], 1, '--xemoe=COMMAND'),
                (['m.gguf', own, "--peer=a='x"], 2, "the command of a, 'x: No closing quotation"),
                (['m.gguf', own, '--peer=a=echo'], 1, 'printed no results'),
                ([own], 2, 'expected one MODEL.gguf'),
                (['m.gguf', '-r', '0'], 2, "-r takes a whole number from 1, found '0'"),
                (['m.gguf', '--peer=a'], 2, "--peer takes NAME=COMMAND, found 'a'"),
                (['m.gguf', '--bogus'], 2, 'not recognized')):
            done = self.race(*words)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn(says, done.stderr.strip().split('\n')[-1])
            self.assertEqual(done.stdout, '')
            self.assertNotIn('Traceback', done.stderr)

    def test_an_absent_program_is_told_before_the_first_round(self):
        done = self.race('m.gguf', f"--xemoe={self.program('own', [1])}", '--peer=a=/absent')
        self.assertNotIn('round', done.stderr)

    @unittest.skipUnless(shutil.which('gnuplot'), 'gnuplot is not installed')
    def test_pictures(self):
        kernels = json.dumps({'read_bytes_per_second': 4e10, 'host_read_bytes_per_second': 3e10,
                              'flops': 3e11, 'results': [
                                  {'problem': 'linear N=64', 'kernels': ['a'], 'seconds': 1e-3,
                                   'bytes_per_second': 2e10, 'flops': 4e10}]})
        own = self.program('own', [1])
        path = Path(self.folder.name) / 'own'
        path.write_text(path.read_text().replace(
            'import json, sys\n', f'import json, sys\nif "--kernels" in sys.argv:\n'
            f'    print({kernels!r})\n    sys.exit()\n', 1))
        prefix = Path(self.folder.name) / 'out'
        done = self.race('m.gguf', '-r', '1', f'--xemoe={own}', f"--peer=a={own}",
                         f'--plot={prefix}')
        self.assertEqual(done.returncode, 0, done.stderr)
        for name, says in (('speed', 'tokens a second'), ('roofline', 'linear N=64')):
            self.assertIn(says, Path(f'{prefix}-{name}.svg').read_text())


if __name__ == '__main__':
    unittest.main()
