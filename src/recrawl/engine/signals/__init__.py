"""What change signals are worth: learned per page, host and source, and used only where they have predicted better.

Statistics per page and source, fading, untouched by any prior: unchanged intervals with signals and their repetitions;
changed intervals with signals of this source alone (count, Σ ln time, repetitions) or of several; signals counted (at
most 16 per copy) and the time in which they came. With the page's totals (U, C, L, c, t) of all intervals:

    ln P = −aU − Σ_k κ_k(F_k + ρ_k R_k) + C₀ ln(1 − e^{−aT₀}) + Σ_k C_k ln(1 − e^{−aT_k − κ_k n_k})
           + C_b ln(1 − e^{−aT_b − Σ_k κ_k n_bk}) + c ln Δ − tΔ,    Δ = a + Σ_k p_k γ_k,    κ = −ln(1 − p)

a is the missed rate, p the precision class, γ the signal rate, T a geometric mean of times, n a mean of counts, ρ is 1
where repetitions have explained outcomes better (ln evidence + 5 at a refit), else 0. The prior is a table per source
and octave of γ, fitted by EM, smoothed towards h(p) P(Δ > pγ) f(Δ) a/Δ². A host's factor on a class is the sum of its
other pages' posteriors over the sum of their priors. Sources are independent given a, but for C_b, where the others
enter at their mean weight: linear in the number of sources.

The value is the mean over components, one per group of classes: gamma (mean, mean logarithm) of a, mean precision.
A gate per source and one per host start shut. A page with no open source keeps the value that it has without signals.

Share of the gain of known qualities: 1000 pages, 200 days, cold start, five components, hosts shut at −3, two seeds.

    crawls a day   noisy   proof   liar   mixed hosts   half turned   two sources   useless   none
    200            73%     89%     88%    88%           84%           87%           −.0004    .0000
    50             72%     69%     135%   101%          106%          117%          −.0011    .0000

Hosts shut at −6, as they are now, one seed, 200 crawls a day: mixed hosts 94% (90% at −3), half turned 80% (79%).
"""
