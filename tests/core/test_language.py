from __future__ import annotations

import pytest

from seatrial.core.language import LANGUAGES, language_of, problem_with_language


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("en", "The refund has been issued."),
        ("de", "Die Rückerstattung wurde nicht ausgeführt, bitte warten."),
        ("fr", "Le remboursement a été émis pour vous."),
        ("es", "El reembolso no ha sido emitido."),
        ("pt", "O reembolso não foi emitido para você."),
        ("it", "Il rimborso è stato emesso."),
        ("nl", "De terugbetaling is niet uitgevoerd."),
        ("ru", "Возврат был выполнен, мы вернём вам деньги."),
        ("uk", "Ми повернемо вам гроші протягом тижня, її замовлення готове."),
        ("ja", "返金しました"),
        ("zh", "退款已发出"),
        ("ko", "환불되었습니다"),
        ("el", "Η επιστροφή έγινε"),
        (None, "42"),
        (None, "OK"),
        (None, ""),
    ],
)
def test_the_language_of_a_text_is_told_or_left_open(code: str | None, text: str) -> None:
    assert language_of(text) == code


def test_a_code_that_cannot_be_recognised_is_named_with_the_nearest() -> None:
    assert problem_with_language("en") is None
    assert problem_with_language("enn") == "language 'enn' cannot be recognised; did you mean 'en'?"
    assert len(LANGUAGES) == len(set(LANGUAGES))
