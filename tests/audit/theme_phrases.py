"""Invented topic phrases as a judge writes them, put together by hand: what a grouping of themes is measured by."""

from __future__ import annotations

__all__ = ["PHRASES"]

PHRASES: dict[str, tuple[str, ...]] = {
    "bathing": (
        "when baths are allowed", "time until bathing", "how long to avoid tub baths", "bathing after surgery",
        "soaking in a bath", "weeks before taking a bath", "swimming and bath restrictions",
    ),
    "pregnancy": (
        "waiting time before pregnancy", "when pregnancy is safe", "timing of pregnancy after transplant",
        "years to wait before conceiving", "planning a pregnancy", "how soon to become pregnant",
    ),
    "blood tests": (
        "frequency of blood tests", "how often blood is drawn", "lab test schedule", "weekly or monthly blood work",
        "interval between laboratory tests", "blood test frequency in the first year",
    ),
    "driving": (
        "when driving is allowed", "weeks before driving", "return to driving", "driving after surgery",
        "how long not to drive a car",
    ),
    "lifting": (
        "lifting limit in kilograms", "how much weight may be lifted", "heavy lifting restriction",
        "duration of the lifting restriction", "weight limit for lifting",
    ),
    "alcohol": (
        "whether alcohol is allowed", "alcohol consumption", "drinking alcohol after transplant",
        "amount of alcohol permitted", "complete avoidance of alcohol",
    ),
    "dental": (
        "antibiotics before dental work", "timing of dental care", "when to see the dentist",
        "dental cleaning after transplant", "delay of dental procedures",
    ),
    "vaccines": (
        "live vaccines", "timing of vaccination", "flu shot recommendation", "which vaccines are safe",
        "waiting period before vaccines",
    ),
    "fever": (
        "temperature at which to call", "fever threshold", "when to report a fever", "fever definition in degrees",
        "temperature that needs medical attention",
    ),
    "missed dose": (
        "what to do after a missed dose", "missed medication dose", "taking a late dose", "doubling a missed dose",
        "hours after which to skip a dose",
    ),
    "grapefruit": (
        "eating grapefruit", "grapefruit and medication", "grapefruit juice avoidance", "avoiding grapefruit",
    ),
    "raw food": (
        "raw fish and sushi", "eating raw seafood", "undercooked meat", "raw eggs and unpasteurised cheese",
        "food safety of raw foods",
    ),
    "pets": (
        "cleaning the cat litter", "keeping pets at home", "contact with animals", "owning birds or reptiles",
        "who cleans the litter box",
    ),
    "sun": (
        "sunscreen strength", "sun protection factor", "avoiding sun exposure", "how often to apply sunscreen",
    ),
    "sex": (
        "when sexual activity may resume", "return to sexual activity", "waiting time for sex",
    ),
}  # fmt: skip
