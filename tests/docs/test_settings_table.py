"""The table of settings says what the code says."""

from hooks.settings import SETTINGS, Setting
from tests.docs.pages import OPERATIONS, rows, section


def documented() -> tuple[Setting, ...]:
    return tuple(
        Setting(name.strip("`"), default.strip("`"), meaning, required)
        for name, default, required, meaning in rows(section(OPERATIONS, "Settings"))
    )


def test_every_setting_is_documented_as_it_is() -> None:
    assert documented() == SETTINGS
