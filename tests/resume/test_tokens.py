"""The estimate of tokens, against counts that were taken once with a real tokenizer (o200k_base)."""

import pytest

from segue.resume.tokens import tokens, weigh

COUNTED = {
    "": 0,
    "The kettle must stop by itself when the water boils, and it must never be started without water in it.": 22,
    "def should_stop_heating(self, reading: Reading) -> bool:\n    return reading.celsius >= self.boiling_point\n": 25,
    "src/kettle/boil_controller.py tests/kettle/test_boil_controller.py docs/how-to/descale.md": 22,
    "internal/boiler/heating/sensor.go:12:\tinternal/boiler/descale/filter_test.go": 21,
    "reading.temperature.celsius(self.boiling_point, water_level_sensor)": 13,
    "- [x] Write a failing test\n- [ ] Stop heating at the boiling point\n- [ ] Describe the change for users\n": 28,
    "Der Kocher muss von selbst aufhören, sobald es kocht. Он должен сам выключаться. 水が沸いたら止まる。": 31,
}


@pytest.mark.parametrize("text", COUNTED)
def test_the_estimate_is_near_and_rather_too_high(text: str) -> None:
    assert 0.97 * COUNTED[text] <= tokens(text) <= 1.4 * COUNTED[text] + 2


def test_parts_add_up_to_the_whole() -> None:
    parts = ["One line.\n", "Another one, with names: fooBar\n", "And the last.\n"]
    assert weigh("".join(parts)) == pytest.approx(sum(map(weigh, parts)))
