"""What change signals are worth: learned per page, host and source, and used only where they have predicted better.

Statistics per page and source, fading, untouched by any prior: unchanged intervals with signals and their repetitions;
changed intervals with signals of this source alone (count, Σ ln time, repetitions) or of several; signals counted (at
most 16 per copy) and the time in which they came. With the page's totals (U, C, L, c, t) of all intervals:

    ln P = −aU − Σ_k κ_k(F_k + ρ_k R_k) + C₀ ln(1 − e^{−aT₀}) + Σ_k C_k ln(1 − e^{−aT_k − κ_k n_k})
           + C_b ln(1 − e^{−aT_b − Σ_k κ_k n_bk}) + c ln Δ − tΔ,    Δ = a + Σ_k p_k γ_k,    κ = −ln(1 − p)

a is the missed rate, p the precision class, γ the signal rate, T a geometric mean of times, n a mean of counts, ρ is 1
where repetitions have explained outcomes better (by 1 in ln evidence and 2 standard errors at a refit, what hosts say
left out), else 0. The prior is a table per source and octave of γ, fitted by EM, smoothed towards h(p) P(Δ > pγ) f(Δ)
a/Δ². A host's factor on a class is the sum of its other pages' posteriors over the sum of their priors. Sources are
independent given a, whose prior they share, but for C_b, where the others enter at their mean weight: linear in the
number of sources. Signals of sources other than the one whose classes the components tell apart weigh
−ln Σ P(class) e^{−κn}.

The value is the mean over components, one per group of classes: gamma (mean, mean logarithm) of a, mean precision.
A gate per source and one per host start shut. A page with no open source keeps the value that it has without signals.

`experiments/signals` measures which share of the gain of known qualities is learned, and what floods do.
"""
