"""The one-page note: what a guarded job promises, from its code, for those who answer for it; and whether it is current."""
