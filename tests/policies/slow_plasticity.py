"""A slow version of plastic networks, which loops over synapses and is written from the table of rules."""

from dataclasses import replace
from itertools import pairwise

import numpy as np

from hebbes.files.reference_coefficients import convert_reference_coefficients
from hebbes.policies.hebbian import compute_synaptic_weights

TABLE = {  # a name begins with the letters of its first coefficients
    "A": (1, lambda c, x, y: c[0] * x * y),
    "AD": (2, lambda c, x, y: c[0] * x * y + c[1]),
    "AD_lr": (3, lambda c, x, y: c[2] * (c[0] * x * y + c[1])),
    "ABC": (3, lambda c, x, y: c[0] * x * y + c[1] * x + c[2] * y),
    "ABC_lr": (4, lambda c, x, y: c[3] * (c[0] * x * y + c[1] * x + c[2] * y)),
    "ABCD": (4, lambda c, x, y: c[0] * x * y + c[1] * x + c[2] * y + c[3]),
    "ABCD_lr": (5, lambda c, x, y: c[3] * (c[0] * x * y + c[1] * x + c[2] * y + c[4])),
    "ABCD_lr_D_out": (5, lambda c, x, y: c[3] * (c[0] * x * y + c[1] * x + c[2] * y) + c[4]),
    "ABCD_lr_D_in_and_out": (6, lambda c, x, y: c[3] * (c[0] * x * y + c[1] * x + c[2] * y + c[4]) + c[5]),
}
ETA = {"AD_lr": 2, "ABC_lr": 3, "ABCD_lr": 3, "ABCD_lr_D_out": 3, "ABCD_lr_D_in_and_out": 3}
SIZES = (5, 4, 3, 2)
SYNAPSES = 5 * 4 + 4 * 3 + 3 * 2
NUM_SETS = {"synapse": SYNAPSES, "modulo": 7, "layer": 3, "global": 1, "neuron": 5 + 4 + 3 + 2}
NEURAL = {
    "neural_9": ((2, 3, 1), False, 9),
    "neural_18": ((2, 3, 3, 1), False, 18),
    "neural_25": ((2, 3, 3, 1), True, 25),
}


def find_coefficients(sharing, rule, sets, sizes, layer, i, j):
    """The coefficients of the synapse from neuron i of a layer to neuron j of the next."""
    before = sum(a * b for a, b in list(pairwise(sizes))[:layer])
    number = before + sizes[layer + 1] * i + j
    if sharing != "neuron":
        return sets[{"synapse": number, "modulo": number % 7, "layer": layer, "global": 0}[sharing]]
    pre, post = sets[sum(sizes[:layer]) + i], sets[sum(sizes[: layer + 1]) + j]
    product = pre * post
    for letter, neuron in (("B", pre), ("C", post)):
        if letter in rule.partition("_")[0]:
            place = rule.index(letter)
            product[place] = neuron[place]
    return product


def compute_network_output(kind, parameters, x, y):
    sizes, bias, _ = NEURAL[kind]
    activity, first = np.array([x, y]), 0
    for into, out in pairwise(sizes):
        total = parameters[first : first + into * out].reshape(out, into) @ activity
        first += into * out
        if bias:
            total, first = total + parameters[first : first + out], first + out
        activity = np.tanh(total)
    return activity[0]


def play_slow_episode(
    compute_change, find_eta, weights, observations, normalization, update_every, output_activity="raw",
    rewards=None, modulation=None, rates=None, activity_window=1,
):  # fmt: skip
    """Outputs of every env step. compute_change(layer, i, j, x, y) is a rule's change of a weight.

    rewards[k] follows env step k, modulation is (m0, m1), rates are the layers' k; None without.
    """
    weights, outputs, history = [matrix.astype(np.float64) for matrix in weights], [], []
    traces, since_update = [np.zeros_like(matrix) for matrix in weights], []
    for env_step, observation in enumerate(observations, start=1):
        activities = [observation.astype(np.float64)]
        for matrix in weights:
            activities.append(np.tanh(matrix @ activities[-1]))
            last = matrix @ activities[-2]
        outputs.append(last)
        if output_activity == "raw":
            activities[-1] = last
        history.append(activities)
        if modulation is not None:
            since_update.append(float(rewards[env_step - 1]))
        if env_step % update_every:
            continue
        factor = 1.0 if modulation is None else np.tanh(modulation[0] + modulation[1] * sum(since_update))
        since_update = []
        averaged = [np.mean(layer, axis=0) for layer in zip(*history[-activity_window:], strict=True)]
        for layer, matrix in enumerate(weights):
            for j in range(matrix.shape[0]):
                for i in range(matrix.shape[1]):
                    x, y = averaged[layer][i], averaged[layer + 1][j]
                    change = compute_change(layer, i, j, x, y)
                    if rates is not None:
                        traces[layer][j, i] = (1 - rates[layer]) * traces[layer][j, i] + rates[layer] * change
                        change = traces[layer][j, i]
                    change *= factor
                    if normalization == "oja":
                        change -= abs(factor) * find_eta(layer, i, j) * y**2 * matrix[j, i]
                    matrix[j, i] += change
            if normalization == "max_abs":
                matrix /= np.abs(matrix).max()
            elif normalization == "clip":
                np.clip(matrix, -1, 1, out=matrix)
            elif normalization == "tanh":
                np.tanh(matrix, out=matrix)
    return np.array(outputs)


def play_episode(policy, row, observations, seed=3, rewards=None):
    """Outputs of each env step of a member, its first weights, the state at the end; rewards[k] follows env step k."""
    weights = row[None]
    state = policy.initial_state(weights, [np.random.default_rng(seed)], {})
    initial = [matrix[0].copy() for matrix in compute_synaptic_weights(state)]
    before = np.zeros((len(observations), 1), np.float32)
    if rewards is not None:
        before[1:, 0] = rewards[:-1]
    steps = zip(observations, before, strict=True)
    outputs = [policy.act(weights, observation[None], reward, state, {})[0].copy() for observation, reward in steps]
    return np.array(outputs), initial, state


def check_against_slow_version(policy, sets, observations, rewards=None, modulators=(), rtol=1e-4, atol=1e-5):
    """Compares the outputs of an episode.

    `sets` has a row for each set of coefficients, or of parameters of a neural rule. `modulators` are m0, m1 and the
    layers' rates before the sigmoid, as far as the policy has them.
    """
    rule, exact, numbers = policy.hebb_rule, sets.astype(np.float64), np.asarray(modulators, np.float64)
    sizes = (*policy.observation_shape, *policy.hidden_sizes, policy.num_outputs)

    def find(layer, i, j):
        return find_coefficients(policy.sharing, rule, exact, sizes, layer, i, j)

    def compute_change(layer, i, j, x, y):
        if rule in NEURAL:
            return compute_network_output(rule, exact[layer % len(exact)], x, y)
        return TABLE[rule][1](find(layer, i, j), x, y)

    if policy.sharing == "synapse":
        plain = replace(policy, modulation="none", eligibility=False)
        rules = convert_reference_coefficients(plain, sets, np.zeros(0))
    else:
        rules = sets.ravel() if rule in NEURAL else sets.T.ravel()
    row = np.concatenate([rules, numbers]).astype(np.float32)
    found, initial, _ = play_episode(policy, row, observations, rewards=rewards)
    expected = play_slow_episode(
        compute_change,
        lambda *place: find(*place)[ETA[rule]] if rule in ETA else 1.0,
        initial,
        observations,
        policy.normalization,
        policy.update_every,
        policy.output_activity,
        rewards=rewards,
        modulation=numbers[:2] if policy.modulation == "reward" else None,
        rates=1 / (1 + np.exp(-numbers[1 - len(sizes) :])) if policy.eligibility else None,
        activity_window=policy.activity_window,
    )
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=atol)
