"""Digits on Flower, with sizes that no client tells: FedSampling, a policy, a private folder."""
