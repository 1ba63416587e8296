"""The simhash of a text by loops; imports nothing from the package."""

MASK = (1 << 64) - 1


def mix(key):
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        key = ((key ^ (key >> 33)) * factor) & MASK
    return key ^ (key >> 33)


def simhash(text):
    letters = "".join(text.decode("utf-8", "replace").split())
    if not letters:
        return 0
    grams = [letters[k : k + 4] for k in range(max(len(letters) - 3, 1))]
    balance = [0] * 64
    for gram in grams:
        key = 0
        for letter in gram:
            key = ((key + ord(letter)) * 0x9E3779B97F4A7C15) & MASK
        key = mix(key)
        for bit in range(64):
            balance[bit] += 1 if key >> bit & 1 else -1
    return sum(1 << bit for bit in range(64) if balance[bit] > 0)
