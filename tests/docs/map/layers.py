"""Picture of the layers of the core, and the other import rules, from the tables of the architecture tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from textwrap import wrap

from docs._ext.markdown import markdown
from docs._ext.modules import summary
from tests.architecture import policy

NAME_WIDTH, TEXT_WIDTH = 24, 88


def path_of(module: str) -> Path:
    """Return the file of a module, or the folder of a package."""
    folder = policy.CORE.sources.parent.joinpath(*module.split("."))
    return folder if folder.is_dir() else folder.with_suffix(".py")


def shown(module: str) -> str:
    """Return a module or package as a path below the package of the core."""
    path = path_of(module)
    if path == policy.CORE.sources:
        return "__init__.py"
    return path.relative_to(policy.CORE.sources).as_posix()


def _ruler(left: str, middle: str, right: str) -> str:
    return f"{left}{'─' * (NAME_WIDTH + 2)}{middle}{'─' * (TEXT_WIDTH + 2)}{right}"


def _entry(name: str, text: str) -> Iterator[str]:
    for number, line in enumerate(wrap(text.replace("`", ""), TEXT_WIDTH)):
        yield f"│ {'' if number else name:<{NAME_WIDTH}} │ {line:<{TEXT_WIDTH}} │"


def layers_picture() -> str:
    """Return one box for each layer, the lowest at the bottom, with the summary of each package."""
    lines = [_ruler("┌", "┬", "┐"), *_entry(policy.CLIENT.package, summary(policy.CLIENT.sources))]
    for layer in reversed(policy.LAYERS):
        lines.append(_ruler("├", "┼", "┤"))
        for module in layer:
            lines += _entry(shown(module), summary(path_of(module)))
    return "\n".join([*lines, _ruler("└", "┴", "┘")])


def allowed_to(module: str) -> str:
    """Return the packages of the core that a package may import by its layer, in the order of the picture."""
    place = next(number for number, layer in enumerate(policy.LAYERS) if module in layer)
    below = [each for layer in reversed(policy.LAYERS[: place + 1]) for each in layer if each != module]
    return ", ".join(f"`{shown(each)}`" for each in below)


def strangers() -> str:
    """Return the pairs of packages that do not import each other."""
    return markdown(("package", "and package"), ((f"`{shown(a)}`", f"`{shown(b)}`") for a, b in policy.STRANGERS))


def complete_lists() -> str:
    """Return the basic packages, which may import only listed modules, with these modules."""
    return markdown(
        ("package", "may import, besides the standard library"),
        (
            (f"`{shown(module)}`", ", ".join(f"`{shown(each)}`" for each in allowed) or "nothing")
            for module, allowed in policy.IMPORTS_OF.items()
        ),
    )


def refused() -> str:
    """Return the modules that the core must not import, with the reason."""
    return markdown(("module", "reason"), ((f"`{name}`", why) for name, why in policy.REFUSED_IN_CORE.items()))
