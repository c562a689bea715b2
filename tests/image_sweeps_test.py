"""As ``datasets_sweeps_test``, for data sets of images."""

import pytest

from tests import datasets_sweeps_test as sweeps

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", sweeps.IMAGES)
def test_eight_settings_run_end_to_end_on_a_file_of_the_set_s_format(name, tmp_path):
    sweeps.run_smoke(name, tmp_path)
