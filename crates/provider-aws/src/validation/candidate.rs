//! Which instance type a class is tried with.

use api::{aws::EC2NodeClass, labels::aws};
use model::Requirements;

use crate::{
    class_view, family,
    instance_type::{Incompatible, Shape},
};

/// Known to every region and cheap to try, should no pool say what it wants.
const FALLBACK: [&str; 2] = ["m5.large", "m6g.large"];

pub const TENANCY_KEY: &str = aws::INSTANCE_TENANCY;

/// The type to try: one that pools of the class would launch, on a plain image rather than on one for accelerators.
pub fn of<'a>(class: &EC2NodeClass, shapes: &'a [Shape], pools: &[Requirements]) -> Option<&'a Shape> {
    // Whether there is an image is asked last, so that pools which no image serves are not passed over for others.
    let is_usable = |shape: &&Shape| matches!(shape.incompatible, None | Some(Incompatible::NoImage));
    let usable: Vec<&Shape> = shapes.iter().filter(is_usable).collect();
    let is_wanted = |shape: &&Shape| pools.iter().any(|pool| shape.requirements.overlaps(pool));
    let mut wanted: Vec<&Shape> = usable.iter().copied().filter(is_wanted).collect();
    // What a pool asks for does not matter to Windows, whose images run on few types.
    if wanted.is_empty() || family::is_windows(&class_view::family(class)) {
        wanted = usable
            .iter()
            .copied()
            .filter(|shape| FALLBACK.contains(&shape.name.as_str()))
            .collect();
    }
    if wanted.is_empty() {
        wanted = usable;
    }
    let with_image: Vec<(&Shape, &str)> = wanted
        .into_iter()
        .filter_map(|shape| Some((shape, class_view::ami_for(class, &shape.requirements)?.id.as_str())))
        .collect();
    // The image is the first of the status that will do, whatever the order of types: the trial is the same every time.
    let plain = class_view::amis(class)
        .iter()
        .filter(|ami| is_plain(&class_view::ami_requirements(ami)))
        .find_map(|ami| with_image.iter().find(|(_, image)| *image == ami.id));
    plain.or(with_image.first()).map(|(shape, _)| *shape)
}

/// An image that is not for accelerators only.
fn is_plain(requirements: &Requirements) -> bool {
    let asks_for = |key: &str| requirements.contains(key) && !requirements.get(key).operator().accepts_absence();
    !asks_for(aws::INSTANCE_GPU_COUNT) && !asks_for(aws::INSTANCE_ACCELERATOR_COUNT)
}

/// Dedicated hardware as soon as a pool may use it: what is allowed there is allowed on shared hardware too.
pub fn tenancy(pools: &[Requirements]) -> &'static str {
    let admits_dedicated = |pool: &Requirements| pool.contains(TENANCY_KEY) && pool.get(TENANCY_KEY).has("dedicated");
    match pools.iter().any(admits_dedicated) {
        true => "dedicated",
        false => "default",
    }
}
