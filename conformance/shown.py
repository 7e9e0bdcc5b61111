"""The commands that pages show as code, with what they print there; and how a check of them ends."""

import re
import sys
from dataclasses import dataclass, field

# What may stand before a command.
VARIABLE = r"[A-Z_]+=\S+ "
# Code between fences, of a shell: all of its lines, or of a session those behind `$`.
FENCE = re.compile(r"^```(\S*)")
SHELLS = ("sh", "bash", "console")


@dataclass
class ShownCommand:
    """A command of a page."""

    # The number of its first line.
    line: int
    # In one line, where the page has it in several.
    text: str
    # Whether it stands behind `$`.
    is_prompted: bool
    # The lines of code up to the next command, without their indentation.
    printed: list = field(default_factory=list)
    # How many of these stand in the same block of code.
    in_block: int = 0


def form_of_commands(programs):
    """What a line of code looks like that is a command: it stands behind `$`, or is one of these programs."""
    words = "|".join(map(re.escape, programs))
    return re.compile(rf"^ {{4,}}(?:(\$ )|(?=(?:{VARIABLE})*(?:{words})(?: |$)|(?:{VARIABLE})+\\$))(.*)$")


def code_of(page):
    """The lines of a page, those of a shell's code between fences as the indented code that they could be."""
    shell = None
    for line in page.splitlines():
        fence = FENCE.match(line)
        if fence:
            shell = fence[1] if shell is None and fence[1] in SHELLS else None
            yield ""
        elif shell and shell != "console":
            # A comment prints nothing, and a line that is indented continues the one before.
            is_command = line.strip() and not line.startswith(("#", " "))
            yield f"    $ {line.removeprefix('$ ')}" if is_command else line
        else:
            yield f"    {line}" if shell == "console" and line.strip() else line


def shown_commands(page, programs=("sapwood",)):
    """The commands in the code of a page, in its order."""
    form = form_of_commands(programs)
    commands, is_continued, is_same_block = [], False, False
    for number, line in enumerate(code_of(page), 1):
        if is_continued:
            commands[-1].text += line.strip()
        elif found := form.match(line):
            commands.append(ShownCommand(number, found[2], found[1] is not None))
            is_same_block = True
        else:
            is_same_block = is_same_block and (not line.strip() or line.startswith("    "))
            if commands and line.startswith("    "):
                commands[-1].printed.append(line.removeprefix("    "))
                commands[-1].in_block += is_same_block
            continue
        is_continued = line.endswith("\\")
        if is_continued:
            commands[-1].text = commands[-1].text.removesuffix("\\") + " "
    return commands


def conclude(faults, summary, count):
    """Ends the program with its faults and a line about it; with 1 if there are faults, or it has looked at nothing."""
    for fault in faults:
        print(fault, file=sys.stderr)
    print(summary)
    sys.exit(1 if faults or not count else 0)
