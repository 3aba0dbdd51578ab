"""Handwritten digits on Flower, with any scheme of fedcohort."""
