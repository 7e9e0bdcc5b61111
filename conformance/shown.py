"""The commands that pages show as code, with what they print there."""

import re
from dataclasses import dataclass, field

# A line of code behind `$`, or one with a command of ours, which may have variables before it.
COMMAND = re.compile(r"^ {4,}(?:(\$ )|(?=(?:[A-Z_]+=\S+ )*sapwood ))(.*)$")


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


def shown_commands(page):
    """The commands in the code of a page, in its order."""
    commands, is_continued = [], False
    for number, line in enumerate(page.splitlines(), 1):
        if is_continued:
            commands[-1].text += line.strip()
        elif found := COMMAND.match(line):
            commands.append(ShownCommand(number, found[2], found[1] is not None))
        else:
            if commands and line.startswith("    "):
                commands[-1].printed.append(line.removeprefix("    "))
            continue
        is_continued = line.endswith("\\")
        if is_continued:
            commands[-1].text = commands[-1].text.removesuffix("\\") + " "
    return commands
