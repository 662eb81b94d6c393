"""The second act of `semel demo`: what the guard is for.

`story` is the order of events: the shop of examples/ charges orders at its payment provider, which the `conductor` makes
hold its answers while workers are killed, as the `script` foretells. First without the guard, then with every policy.
`figures` counts the provider's charges and the guard's records, `promises` holds them against what each policy promised
before the run, `decisions` lets a person decide about two held orders, `report` shows it.
"""
