#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""ntbmsg.hpp below C++20 gives one error line, which says what to do.

  below_cpp20.py FOLDER COMPILER...    FOLDER has the header, COMPILER is the C++ compiler with a user's flags
"""

import subprocess
import sys

folder, *compiler = sys.argv[1:]
done = subprocess.run([*compiler, '-std=c++17', f'-I{folder}', '-fsyntax-only', '-x', 'c++', '-'], check=False,
                      input='#include <ntbmsg.hpp>\n', capture_output=True, text=True)
errors = [line for line in done.stderr.splitlines() if 'error' in line and '#' in line or 'error:' in line]
errors = [line for line in errors if ' | ' not in line]
print(done.stderr)
sys.exit(0 if done.returncode != 0 and len(errors) == 1 and '-std=c++20' in errors[0] else 1)
