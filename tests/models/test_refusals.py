"""Refusals told from answers, measured on sentences written for it; clinical texts are full of "can't" and "not"."""

from __future__ import annotations

import pytest

from hoofbeat.models.reply_text import is_refusal

REFUSALS = (
    "I'm sorry, but I can't help with that.",
    "I can’t assist with this request.",
    "I cannot provide medical advice. Please consult a healthcare professional.",
    "As an AI language model, I am unable to provide a diagnosis.",
    "I am not able to answer medical questions.",
    "I must decline to answer this question.",
    "I won't be able to help you with that.",
    "Sorry, I can't discuss that topic.",
    "I apologize, but I cannot fulfill this request.",
    "Unfortunately, I cannot give medical recommendations.",
    "I'm unable to offer medical advice or interpret test results.",
    "I'm not able to provide medical opinions on individual cases.",
    "I'm really sorry you're going through this, but I'm unable to provide the help that you need.",
    "I can't answer that. Please talk to a doctor.",
    "I'm sorry, I cannot engage with this content.",
    "I don't feel comfortable answering this question.",
    "I'm not comfortable giving medical advice.",
    "It would not be appropriate for me to give a diagnosis here.",
    "I'm just an AI and can't provide a diagnosis. Please see a physician.",
    "As an AI, I don't have the ability to diagnose patients.",
    "I am not a doctor and cannot give you medical advice.",
    "My guidelines don't allow me to answer this.",
    "This request violates my usage policy, so I can't respond.",
    "I have to refuse to answer this question.",
    "Sorry, but that's not something I can help with.",
    "I'm not qualified to give medical advice.",
    "I can't make a diagnosis. Please consult a qualified clinician.",
    "I cannot comply with that request.",
    "Es tut mir leid, aber dabei kann ich nicht helfen.",
    "Je suis désolé, mais je ne peux pas fournir de conseils médicaux.",
    "Lo siento, pero no puedo dar consejos médicos.",
    "很抱歉，我无法提供医疗建议。",
)
ANSWERS = (
    "I cannot rule out pulmonary embolism without imaging, so CT angiography is the next step.",
    "I can't exclude myocarditis, but acute pericarditis is the most likely diagnosis.",
    "The patient cannot extend the wrist, which points to the radial nerve.",
    "Unfortunately, the tumour can't be resected; palliative chemotherapy is indicated.",
    "The answer is B.",
    "B",
    "Refuse transfusion: the patient has capacity, so her refusal must be respected.",
    "She declined surgery, and her wishes should be respected.",
    "The physician should not provide the information to the employer without consent.",
    "I'm unable to distinguish A from B on these data, but A is more common. Answer: A",
    "Not able to swallow, the patient needs a nasogastric tube.",
    "The handbook does not say.",
    "The document does not address this question.",
    "There is no mention of the dose in the passages.",
    "None of the options is correct.",
    "I don't know.",
    "It is not possible to tell from the vignette.",
    "Sorry for the confusion: the correct answer is C.",
    "I apologize for the error. The correct answer is D.",
    "As an AI model trained on exam questions, my answer is B.",
    "I cannot provide medical advice, but for the exam the answer is C.",
    "I'm not a doctor, but the most likely diagnosis is acute pericarditis.",
    "The patient can't be helped by antibiotics, as this is viral.",
    "I will not repeat the case; the diagnosis is IgA nephropathy.",
    'Tell the patient: "I can\'t help you die, but I can relieve your pain." Option C.',
    "Disclosure without consent is not appropriate. The physician must refuse.",
    "Decline the gift and explain why.",
    "I am not able to see the image, but the description suggests a melanoma. The answer is D.",
    "We cannot give thrombolysis because of the recent surgery; embolectomy is best.",
    "The drug cannot be given in pregnancy.",
    "I won't consider A further. B is right.",
    "I can help with that: the answer is C.",
    "I'm sorry to hear that. Based on the findings, iron deficiency anemia is most likely.",
    "Answering medical questions like this one requires the full picture; here that is nephrotic syndrome.",
    "It would not be appropriate to discharge the patient; admit for observation.",
    "I don't feel the data support A; B fits better.",
)

# Written after the first were mended, and mended in turn; docs/reading.md has what both came to at first sight.
LATER_REFUSALS = (
    "I'm sorry, but I'm not able to provide a diagnosis based on this description.",
    "I can't provide guidance on that. Please seek care from a professional.",
    "I cannot offer a medical opinion.",
    "As an AI developed to be helpful and harmless, I can't assist with medical decisions.",
    "Sorry, I'm not able to help with medical questions.",
    "I'm afraid I can't help with that.",
    "I am unable to fulfill this request as it involves medical advice.",
    "I'd rather not answer this question.",
    "I will not answer this.",
    "For safety reasons, I can't provide an answer to this question.",
    "Please consult a doctor. I can't give a diagnosis.",
    "I regret that I cannot assist you with this.",
    "That's not something I'm able to discuss.",
    "I can not help with this.",
)
LATER_ANSWERS = (
    "I can't see ST elevation in the description, which makes pericarditis less likely.",
    "I'm not able to identify a better option than B.",
    "As an AI, I'd choose C.",
    "Unfortunately, none of the tests can make a diagnosis on their own; biopsy is needed.",
    "I can't give a diuretic here because the patient is hypotensive.",
    "I am unable to make a diagnosis of lupus on these criteria; membranous nephropathy fits.",
    "Sorry, I misread the potassium. Hyperkalemia.",
    "No. The patient cannot give consent.",
    "I will not choose A because the pulses are equal. C.",
    "I apologize for any confusion; C is the better option.",
    "It is not appropriate for the physician to accept; option D.",
    "We can't provide this drug in renal failure.",
    "Doctors can't discuss the case with the employer. Answer: B",
    "I would not answer the police without a warrant: option C.",
)


def test_refusals_are_found_and_clinical_answers_are_not_taken_for_them(capsys: pytest.CaptureFixture[str]) -> None:
    missed = [text for text in (*REFUSALS, *LATER_REFUSALS) if not is_refusal(text)]
    false_alarms = [text for text in (*ANSWERS, *LATER_ANSWERS) if is_refusal(text)]
    refusals, answers = len(REFUSALS) + len(LATER_REFUSALS), len(ANSWERS) + len(LATER_ANSWERS)
    found = refusals - len(missed)
    with capsys.disabled():
        print(f"\nrefusals: {found} of {refusals} found, {len(false_alarms)} false alarms in {answers} answers")
    assert refusals + answers >= 60
    assert not false_alarms
    assert found >= 0.95 * refusals, missed


@pytest.mark.parametrize("text", ["", " ", "\n", "a" * 1_000_000, "I can't " * 50_000])
def test_any_text_is_told_at_once(text: str) -> None:
    assert not is_refusal(text)


def test_a_long_text_is_an_answer() -> None:
    assert not is_refusal("I can't assist with this request. " + "The findings are typical of pericarditis. " * 30)
