"""Every call that Karpenter makes, made with boto3 at the aws-fake of FAKE_ENDPOINT, whose cluster is named demo."""
import base64
import json
import os
import time
import unittest
import urllib.request
import uuid

import boto3
import botocore.config
import botocore.exceptions

ENDPOINT = os.environ["FAKE_ENDPOINT"]
REGION = "us-west-2"
CLUSTER = "demo"
DISCOVERY = [{"Name": "tag:karpenter.sh/discovery", "Values": [CLUSTER]}]


def client(service, **config):
    config = botocore.config.Config(retries={"total_max_attempts": 1}, **config)
    return boto3.client(
        service, endpoint_url=ENDPOINT, region_name=REGION, aws_access_key_id="key", aws_secret_access_key="secret", config=config)


ec2, iam, sqs, ssm, eks, pricing, sts, shift = map(
    client, ("ec2", "iam", "sqs", "ssm", "eks", "pricing", "sts", "arc-zonal-shift"))


def control(path, body=None, method=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{ENDPOINT}/_fake/{path}", data=data, method=method)
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)


def tags(**extra):
    return [{"Key": f"kubernetes.io/cluster/{CLUSTER}", "Value": "owned"}, {"Key": "karpenter.sh/nodepool", "Value": "default"},
            *({"Key": key, "Value": value} for key, value in extra.items())]


class Case(unittest.TestCase):
    maxDiff = None

    def refused(self, code, call, **parameters):
        with self.assertRaises(botocore.exceptions.ClientError) as caught:
            call(**parameters)
        self.assertEqual(caught.exception.response["Error"]["Code"], code)
        return caught.exception.response

    def subnets(self):
        found = ec2.describe_subnets(Filters=DISCOVERY, MaxResults=500)["Subnets"]
        return sorted(found, key=lambda subnet: subnet["AvailabilityZone"])

    def group(self):
        return ec2.describe_security_groups(Filters=DISCOVERY)["SecurityGroups"][0]["GroupId"]

    def image(self, architecture="x86_64"):
        name = f"/aws/service/eks/optimized-ami/1.35/amazon-linux-2023/{architecture}/standard/recommended/image_id"
        return ssm.get_parameter(Name=name)["Parameter"]["Value"]

    def profile(self):
        name = f"{CLUSTER}_{uuid.uuid4().int}"[:100]
        iam.create_instance_profile(InstanceProfileName=name)
        iam.add_role_to_instance_profile(InstanceProfileName=name, RoleName=f"KarpenterNodeRole-{CLUSTER}")
        return name

    def template(self, **data):
        name = f"karpenter.k8s.aws/{uuid.uuid4().int}"
        data = {
            "ImageId": self.image(), "UserData": base64.b64encode(b"#!/bin/bash\n").decode(),
            "NetworkInterfaces": [{"DeviceIndex": 0, "Groups": [self.group()]}],
            "BlockDeviceMappings": [{"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": 20, "VolumeType": "gp3", "Encrypted": True}}],
            "MetadataOptions": {"HttpTokens": "required", "HttpPutResponseHopLimit": 1},
            "TagSpecifications": [{"ResourceType": "network-interface", "Tags": tags()}], **data}
        ec2.create_launch_template(
            LaunchTemplateName=name, LaunchTemplateData=data,
            TagSpecifications=[{"ResourceType": "launch-template", "Tags": tags()}])
        return name

    def fleet(self, template, overrides, kind="on-demand", count=1, **more):
        return ec2.create_fleet(
            Type="instant",
            LaunchTemplateConfigs=[{
                "LaunchTemplateSpecification": {"LaunchTemplateName": template, "Version": "$Latest"}, "Overrides": overrides}],
            TargetCapacitySpecification={"TotalTargetCapacity": count, "DefaultTargetCapacityType": kind},
            TagSpecifications=[{"ResourceType": kind, "Tags": tags()} for kind in ("instance", "volume", "fleet")], **more)

    def override(self, instance_type="m5.large", zone=0, **more):
        subnet = self.subnets()[zone]
        return {"InstanceType": instance_type, "SubnetId": subnet["SubnetId"], "AvailabilityZone": subnet["AvailabilityZone"], **more}

    def launched(self, **more):
        answer = self.fleet(self.template(), [self.override()], **more)
        return answer["Instances"][0]["InstanceIds"][0]

    def instance(self, id):
        return ec2.describe_instances(InstanceIds=[id])["Reservations"][0]["Instances"][0]

    def until(self, condition, seconds=20):
        end = time.monotonic() + seconds
        while not condition():
            self.assertLess(time.monotonic(), end, "nothing came of it")
            time.sleep(0.2)


class Types(Case):
    def test_types_come_in_pages_with_their_facts(self):
        filters = [{"Name": "supported-virtualization-type", "Values": ["hvm"]},
                   {"Name": "processor-info.supported-architecture", "Values": ["x86_64", "arm64"]}]
        pages = ec2.get_paginator("describe_instance_types").paginate(Filters=filters, PaginationConfig={"PageSize": 100})
        pages = [page["InstanceTypes"] for page in pages]
        self.assertTrue(all(len(page) == 100 for page in pages[:-1]))
        types = {item["InstanceType"]: item for page in pages for item in page}
        self.assertGreater(len(types), 1200)
        plain = types["m5.large"]
        self.assertEqual((plain["VCpuInfo"]["DefaultVCpus"], plain["MemoryInfo"]["SizeInMiB"]), (2, 8192))
        self.assertEqual(plain["NetworkInfo"]["NetworkCards"][0]["MaximumNetworkInterfaces"], 3)
        self.assertEqual(plain["EbsInfo"]["EbsOptimizedInfo"]["MaximumBandwidthInMbps"], 4750)
        self.assertEqual(types["p4d.24xlarge"]["GpuInfo"]["Gpus"][0]["Name"], "A100")
        self.assertEqual(types["p4d.24xlarge"]["NetworkInfo"]["EfaInfo"]["MaximumEfaInterfaces"], 4)
        self.assertEqual(types["inf2.xlarge"]["NeuronInfo"]["NeuronDevices"][0]["CoreInfo"]["Count"], 2)
        self.assertEqual(types["inf2.xlarge"]["InferenceAcceleratorInfo"]["Accelerators"][0]["Name"], "Inferentia2")
        self.assertEqual(types["i4i.large"]["InstanceStorageInfo"]["TotalSizeInGB"], 468)
        self.assertNotIn("Hypervisor", types["m5.metal"])

    def test_a_dry_run_says_so(self):
        answer = self.refused("DryRunOperation", ec2.describe_instance_types, DryRun=True)
        self.assertEqual(answer["ResponseMetadata"]["HTTPStatusCode"], 412)

    def test_what_is_not_known_is_refused(self):
        self.refused("InvalidInstanceType", ec2.describe_instance_types, InstanceTypes=["m99.large"])
        self.refused("InvalidParameterValue", ec2.describe_instance_types, Filters=[{"Name": "colour", "Values": ["red"]}])

    def test_offerings_lie_in_zones(self):
        pages = ec2.get_paginator("describe_instance_type_offerings").paginate(
            LocationType="availability-zone", PaginationConfig={"PageSize": 1000})
        found = [offer for page in pages for offer in page["InstanceTypeOfferings"]]
        zones = {offer["Location"] for offer in found if offer["InstanceType"] == "m5.large"}
        self.assertEqual(zones, {f"us-west-2{zone}" for zone in "abcd"})


class Prices(Case):
    def test_spot_prices_come_in_pages(self):
        pages = ec2.get_paginator("describe_spot_price_history").paginate(
            ProductDescriptions=["Linux/UNIX", "Linux/UNIX (Amazon VPC)"], StartTime=time.time(), PaginationConfig={"PageSize": 1000})
        found = [entry for page in pages for entry in page["SpotPriceHistory"]]
        self.assertGreater(len(found), 4000)
        self.assertTrue(all(float(entry["SpotPrice"]) > 0 and entry["Timestamp"] for entry in found))

    def test_a_script_changes_prices(self):
        control("prices", {"instanceType": "r5.large", "onDemand": 9.5, "spot": {"us-west-2a": 4.25}})
        history = ec2.describe_spot_price_history(InstanceTypes=["r5.large"], AvailabilityZone="us-west-2a")["SpotPriceHistory"]
        self.assertEqual([float(entry["SpotPrice"]) for entry in history], [4.25])
        self.assertEqual(self.on_demand("r5.large"), 9.5)

    def products(self, tenancy, family):
        fields = {"regionCode": REGION, "serviceCode": "AmazonEC2", "preInstalledSw": "NA", "operatingSystem": "Linux",
                  "capacitystatus": "Used", "marketoption": "OnDemand", "tenancy": tenancy, "productFamily": family}
        filters = [{"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in fields.items()]
        pages = pricing.get_paginator("get_products").paginate(ServiceCode="AmazonEC2", Filters=filters)
        return {item["product"]["attributes"]["instanceType"]: item
                for page in pages for item in map(json.loads, page["PriceList"])}

    def on_demand(self, name, tenancy="Shared", family="Compute Instance"):
        terms = self.products(tenancy, family)[name]["terms"]["OnDemand"].values()
        return float(next(iter(next(iter(terms))["priceDimensions"].values()))["pricePerUnit"]["USD"])

    def test_products_are_shared_or_metal(self):
        self.assertEqual(self.on_demand("m5.large"), 0.096)
        self.assertGreater(self.on_demand("m5.metal", "Dedicated", "Compute Instance (bare metal)"), 4)


class Places(Case):
    def test_three_subnets_and_a_group_are_discovered_by_tag_and_by_id(self):
        found = self.subnets()
        self.assertEqual([(subnet["AvailabilityZone"], subnet["AvailabilityZoneId"]) for subnet in found],
                         [("us-west-2a", "usw2-az1"), ("us-west-2b", "usw2-az2"), ("us-west-2c", "usw2-az3")])
        one = found[0]["SubnetId"]
        by_id = ec2.describe_subnets(Filters=[{"Name": "subnet-id", "Values": [one]}])["Subnets"]
        self.assertEqual([subnet["SubnetId"] for subnet in by_id], [one])
        group = ec2.describe_security_groups(Filters=DISCOVERY, MaxResults=500)["SecurityGroups"][0]
        for filter in ({"Name": "group-name", "Values": [group["GroupName"]]}, {"Name": "group-id", "Values": [group["GroupId"]]},
                       {"Name": "tag-key", "Values": ["karpenter.sh/discovery"]}):
            self.assertEqual(ec2.describe_security_groups(Filters=[filter])["SecurityGroups"][0]["GroupId"], group["GroupId"])

    def test_images_are_found_by_name_owner_and_id(self):
        state = {"Name": "state", "Values": ["available"]}
        by_name = ec2.describe_images(
            Filters=[{"Name": "name", "Values": ["amazon-eks-node-al2023-arm64-standard-1.35-*"]}, state],
            Owners=["self", "amazon"], IncludeDeprecated=True, MaxResults=1000)["Images"]
        self.assertEqual(len(by_name), 2)
        self.assertTrue(all(image["Architecture"] == "arm64" and image["CreationDate"] for image in by_name))
        by_id = ec2.describe_images(Filters=[{"Name": "image-id", "Values": [self.image()]}, state])["Images"]
        self.assertEqual([image["Architecture"] for image in by_id], ["x86_64"])
        self.refused("InvalidAMIID.NotFound", ec2.describe_images, ImageIds=["ami-0123456789abcdef0"])

    def test_parameters_lead_to_images(self):
        for name in ("/aws/service/bottlerocket/aws-k8s-1.35/x86_64/latest/image_id",
                     "/aws/service/eks/optimized-ami/1.32/amazon-linux-2/recommended/image_id",
                     "/aws/service/ami-windows-latest/Windows_Server-2022-English-Core-EKS_Optimized-1.35/image_id"):
            self.assertTrue(ssm.get_parameter(Name=name)["Parameter"]["Value"].startswith("ami-"), name)
        self.refused("ParameterNotFound", ssm.get_parameter, Name="/nothing")
        control("parameters", {"name": "/mine", "value": "ami-1"})
        self.assertEqual(ssm.get_parameter(Name="/mine")["Parameter"]["Value"], "ami-1")

    def test_reservations_are_found_by_id_and_by_tag(self):
        id = control("reservations", {"instanceType": "m5.large", "zone": "us-west-2a", "count": 3, "matchCriteria": "targeted",
                                      "tags": {"team": "ml"}})["id"]
        active = {"Name": "state", "Values": ["active"]}
        by_tag = ec2.describe_capacity_reservations(
            Filters=[active, {"Name": "tag:team", "Values": ["ml"]}], MaxResults=1000)["CapacityReservations"]
        self.assertEqual([found["CapacityReservationId"] for found in by_tag], [id])
        by_id = ec2.describe_capacity_reservations(Filters=[active], CapacityReservationIds=[id])["CapacityReservations"][0]
        self.assertEqual((by_id["AvailableInstanceCount"], by_id["InstanceMatchCriteria"]), (3, "targeted"))
        self.refused("InvalidCapacityReservationId.NotFound", ec2.describe_capacity_reservations, CapacityReservationIds=["cr-0"])

    def test_placement_groups_are_found_by_name_and_by_id(self):
        id = control("placement-groups", {"name": "racks", "strategy": "partition", "partitions": 3})["id"]
        found = ec2.describe_placement_groups(GroupNames=["racks"], Filters=[{"Name": "state", "Values": ["available"]}])
        self.assertEqual((found["PlacementGroups"][0]["GroupId"], found["PlacementGroups"][0]["PartitionCount"]), (id, 3))
        self.assertEqual(ec2.describe_placement_groups(GroupIds=[id])["PlacementGroups"][0]["GroupName"], "racks")
        self.refused("InvalidPlacementGroup.Unknown", ec2.describe_placement_groups, GroupNames=["nobody's"])


class Templates(Case):
    def test_a_template_lives_and_dies(self):
        name = self.template()
        found = ec2.describe_launch_templates(LaunchTemplateNames=[name])["LaunchTemplates"]
        self.assertEqual([template["LaunchTemplateName"] for template in found], [name])
        by_tag = ec2.describe_launch_templates(Filters=[{"Name": "tag:karpenter.sh/nodepool", "Values": ["default"]}], MaxResults=200)
        self.assertIn(name, [template["LaunchTemplateName"] for template in by_tag["LaunchTemplates"]])
        self.refused("InvalidLaunchTemplateName.AlreadyExistsException", ec2.create_launch_template, LaunchTemplateName=name,
                     LaunchTemplateData={"ImageId": "ami-1"})
        ec2.delete_launch_template(LaunchTemplateId=found[0]["LaunchTemplateId"])
        self.refused("InvalidLaunchTemplateName.NotFoundException", ec2.describe_launch_templates, LaunchTemplateNames=[name])
        self.refused("InvalidLaunchTemplateName.NotFoundException", ec2.delete_launch_template, LaunchTemplateName=name)

    def test_user_data_is_limited(self):
        with self.assertRaises(botocore.exceptions.ClientError) as caught:
            self.template(UserData=base64.b64encode(b"x" * 16385).decode())
        self.assertEqual(caught.exception.response["Error"]["Code"], "InvalidUserData.Malformed")
        self.assertIn("User data is limited to", caught.exception.response["Error"]["Message"])


class Fleets(Case):
    def test_an_instance_gets_all_that_the_template_says(self):
        profile = self.profile()
        template = self.template(IamInstanceProfile={"Name": profile}, Monitoring={"Enabled": True})
        answer = self.fleet(template, [self.override(ImageId=self.image(), Priority=0.096)],
                            OnDemandOptions={"AllocationStrategy": "lowest-price"})
        self.assertEqual(answer["Errors"], [])
        group = answer["Instances"][0]
        self.assertEqual((group["InstanceType"], group["Lifecycle"]), ("m5.large", "on-demand"))
        self.assertEqual(group["LaunchTemplateAndOverrides"]["Overrides"]["Priority"], 0.096)
        found = self.instance(group["InstanceIds"][0])
        self.assertEqual(found["SecurityGroups"][0]["GroupId"], self.group())
        self.assertTrue(found["IamInstanceProfile"]["Arn"].endswith(profile))
        self.assertEqual(found["Placement"]["AvailabilityZone"], "us-west-2a")
        self.assertEqual(found["Monitoring"]["State"], "enabled")
        self.assertIn({"Key": "karpenter.sh/nodepool", "Value": "default"}, found["Tags"])
        self.assertNotIn("SpotInstanceRequestId", found)

    def test_strategies_choose(self):
        control("prices", {"instanceType": "c5.large", "onDemand": 0.5, "spot": {"us-west-2a": 0.4, "us-west-2b": 0.02}})
        control("prices", {"instanceType": "c5.xlarge", "onDemand": 0.1, "spot": {"us-west-2a": 0.03}})
        overrides = [self.override("c5.large", Priority=1), self.override("c5.xlarge", Priority=2),
                     self.override("c5.large", zone=1, Priority=3)]
        template = self.template()

        def chosen(kind, **options):
            over = self.fleet(template, overrides, kind, **options)["Instances"][0]["LaunchTemplateAndOverrides"]["Overrides"]
            return over["InstanceType"], over["AvailabilityZone"][-1]

        self.assertEqual(chosen("on-demand", OnDemandOptions={"AllocationStrategy": "lowest-price"}), ("c5.xlarge", "a"))
        self.assertEqual(chosen("on-demand", OnDemandOptions={"AllocationStrategy": "prioritized"}), ("c5.large", "a"))
        optimized = {"SpotOptions": {"AllocationStrategy": "price-capacity-optimized"}}
        self.assertEqual(chosen("spot", **optimized), ("c5.large", "b"))
        control("capacity", {"instanceType": "c5.large", "zone": "us-west-2b", "capacityType": "spot", "available": 1})
        self.assertEqual(chosen("spot", count=2, **optimized), ("c5.xlarge", "a"))
        prioritized = {"SpotOptions": {"AllocationStrategy": "capacity-optimized-prioritized"}}
        self.assertEqual(chosen("spot", **prioritized), ("c5.large", "a"))
        control("capacity", {"instanceType": "c5.large", "zone": "us-west-2b", "capacityType": "spot"})

    def test_what_is_short_is_told_and_the_rest_is_launched(self):
        control("capacity", {"instanceType": "m6i.large", "zone": "us-west-2a", "available": 2})
        answer = self.fleet(self.template(), [self.override("m6i.large")], count=3)
        self.assertEqual(len(answer["Instances"][0]["InstanceIds"]), 2)
        error = answer["Errors"][0]
        self.assertEqual(error["ErrorCode"], "InsufficientInstanceCapacity")
        self.assertEqual(error["LaunchTemplateAndOverrides"]["Overrides"]["InstanceType"], "m6i.large")
        control("capacity", {"instanceType": "m6i.large", "zone": "us-west-2a", "available": 0, "code": "VcpuLimitExceeded"})
        answer = self.fleet(self.template(), [self.override("m6i.large"), self.override("m6i.large", zone=1)])
        self.assertEqual([error["ErrorCode"] for error in answer["Errors"]], ["VcpuLimitExceeded"])
        self.assertEqual(len(answer["Instances"]), 1)

    def test_full_subnets_wrong_images_and_missing_profiles_are_told(self):
        control("subnets", {"subnet": "us-west-2c", "available": 0})
        answer = self.fleet(self.template(), [self.override(zone=2)])
        self.assertEqual(answer["Errors"][0]["ErrorCode"], "InsufficientFreeAddressesInSubnet")
        control("subnets", {"subnet": "us-west-2c", "available": 4000})
        answer = self.fleet(self.template(), [self.override("m6g.large")])
        self.assertIn("architecture", answer["Errors"][0]["ErrorMessage"])
        answer = self.fleet(self.template(IamInstanceProfile={"Name": "nobody's"}), [self.override()])
        self.assertIn("Invalid IAM Instance Profile name", answer["Errors"][0]["ErrorMessage"])
        self.refused("InvalidLaunchTemplateName.NotFoundException", self.fleet, template="karpenter.k8s.aws/0",
                     overrides=[self.override()])

    def test_what_is_not_there_is_refused_and_not_ignored(self):
        weighted = [self.override(WeightedCapacity=2)]
        self.refused("UnknownParameter", self.fleet, template=self.template(), overrides=weighted)
        self.refused("UnknownParameter", self.fleet, template=self.template(), overrides=[self.override()],
                     OnDemandOptions={"MinTargetCapacity": 1})
        self.refused("InvalidParameterValue", ec2.create_fleet, Type="maintain", LaunchTemplateConfigs=[],
                     TargetCapacitySpecification={"TotalTargetCapacity": 1})

    def test_new_things_are_seen_a_little_later(self):
        control("timing", {"propagation": 2})
        self.addCleanup(control, "timing", {"propagation": 0})
        name = self.template()
        self.refused("InvalidLaunchTemplateName.NotFoundException", self.fleet, template=name, overrides=[self.override()])
        self.until(lambda: name in [found["LaunchTemplateName"] for found in ec2.describe_launch_templates()["LaunchTemplates"]])
        id = self.fleet(name, [self.override()])["Instances"][0]["InstanceIds"][0]
        self.refused("InvalidInstanceID.NotFound", ec2.describe_instances, InstanceIds=[id])

    def test_a_token_launches_once(self):
        template, token = self.template(), str(uuid.uuid4())
        one, two = (self.fleet(template, [self.override()], ClientToken=token) for _ in range(2))
        self.assertEqual(one["Instances"], two["Instances"])
        self.refused("IdempotentParameterMismatch", self.fleet, template=template, overrides=[self.override()], count=2,
                     ClientToken=token)

    def test_reservations_are_used_up(self):
        id = control("reservations", {"instanceType": "m5.xlarge", "zone": "us-west-2a", "count": 1, "matchCriteria": "targeted"})["id"]
        template = self.template(CapacityReservationSpecification={
            "CapacityReservationPreference": "capacity-reservations-only", "CapacityReservationTarget": {"CapacityReservationId": id}})
        answer = self.fleet(template, [self.override("m5.xlarge")], count=2)
        found = self.instance(answer["Instances"][0]["InstanceIds"][0])
        self.assertEqual(found["CapacityReservationId"], id)
        self.assertEqual(found["CapacityReservationSpecification"]["CapacityReservationPreference"], "capacity-reservations-only")
        self.assertEqual(answer["Errors"][0]["ErrorCode"], "ReservationCapacityExceeded")
        left = ec2.describe_capacity_reservations(CapacityReservationIds=[id])["CapacityReservations"][0]
        self.assertEqual(left["AvailableInstanceCount"], 0)

    def test_spread_groups_have_a_limit_and_partitions_a_number(self):
        spread = control("placement-groups", {"name": "apart", "strategy": "spread", "spreadLevel": "rack"})["id"]
        answer = self.fleet(self.template(Placement={"GroupId": spread}), [self.override()], count=8)
        self.assertEqual(len(answer["Instances"][0]["InstanceIds"]), 7)
        self.assertIn("limit of instances in this spread placement group", answer["Errors"][0]["ErrorMessage"])
        racks = control("placement-groups", {"name": "shelves", "strategy": "partition", "partitions": 2})["id"]
        answer = self.fleet(self.template(Placement={"GroupId": racks}), [self.override()], count=2)
        placed = [self.instance(id)["Placement"]["PartitionNumber"] for id in answer["Instances"][0]["InstanceIds"]]
        self.assertEqual(placed, [1, 2])

    def test_dry_runs_launch_nothing(self):
        template, subnet = self.template(), self.subnets()[0]["SubnetId"]
        self.refused("DryRunOperation", self.fleet, template=template, overrides=[self.override()], DryRun=True)
        run = dict(DryRun=True, MinCount=1, MaxCount=1, InstanceType="m5.large",
                   NetworkInterfaces=[{"DeviceIndex": 0, "SubnetId": subnet}])
        self.refused("DryRunOperation", ec2.run_instances, LaunchTemplate={"LaunchTemplateName": template, "Version": "$Latest"}, **run)
        bad = {"LaunchTemplateName": self.template(IamInstanceProfile={"Name": "nobody's"})}
        answer = self.refused("InvalidParameterValue", ec2.run_instances, LaunchTemplate=bad, **run)
        self.assertIn("Invalid IAM Instance Profile name", answer["Error"]["Message"])


class Instances(Case):
    def test_an_instance_boots_is_tagged_and_ends(self):
        id = self.launched()
        self.assertIn(self.instance(id)["State"]["Name"], ("pending", "running"))
        self.until(lambda: self.instance(id)["State"]["Name"] == "running")
        ec2.create_tags(Resources=[id], Tags=[{"Key": "Name", "Value": "node-1"}])
        listed = ec2.describe_instances(Filters=[
            {"Name": "tag-key", "Values": ["karpenter.sh/nodepool"]}, {"Name": "tag:Name", "Values": ["node-1"]},
            {"Name": "instance-state-name", "Values": ["pending", "running", "stopping", "stopped", "shutting-down"]}], MaxResults=1000)
        self.assertEqual([item["InstanceId"] for found in listed["Reservations"] for item in found["Instances"]], [id])
        change = ec2.terminate_instances(InstanceIds=[id])["TerminatingInstances"][0]
        self.assertEqual((change["PreviousState"]["Name"], change["CurrentState"]["Name"]), ("running", "shutting-down"))
        self.until(lambda: self.instance(id)["State"]["Name"] == "terminated")

    def test_spot_is_marked(self):
        id = self.launched(kind="spot", SpotOptions={"AllocationStrategy": "price-capacity-optimized"})
        found = self.instance(id)
        self.assertEqual(found["InstanceLifecycle"], "spot")
        self.assertTrue(found["SpotInstanceRequestId"].startswith("sir-"))

    def test_what_is_not_there_is_told(self):
        missing = ["i-0123456789abcdef0"]
        self.refused("InvalidInstanceID.NotFound", ec2.describe_instances, InstanceIds=missing)
        self.refused("InvalidInstanceID.NotFound", ec2.terminate_instances, InstanceIds=missing)
        self.refused("InvalidInstanceID.NotFound", ec2.create_tags, Resources=missing, Tags=[{"Key": "a", "Value": "b"}])

    def test_health_is_told(self):
        id = self.launched()
        self.until(lambda: self.instance(id)["State"]["Name"] == "running")
        control("instance-status", {"instance": id, "instanceImpaired": True, "events": ["instance-retirement"], "secondsAgo": 300})
        for name, value in (("instance-status.status", "impaired"), ("event.code", "instance-retirement")):
            found = ec2.describe_instance_status(Filters=[{"Name": name, "Values": [value]}])["InstanceStatuses"]
            self.assertEqual([status["InstanceId"] for status in found], [id])
        detail = found[0]["InstanceStatus"]["Details"][0]
        self.assertEqual((detail["Status"], found[0]["SystemStatus"]["Status"]), ("failed", "ok"))
        self.assertGreater(time.time() - detail["ImpairedSince"].timestamp(), 290)
        self.assertEqual(found[0]["Events"][0]["Code"], "instance-retirement")


class Profiles(Case):
    def test_a_profile_lives_and_dies(self):
        name, role, path = f"{CLUSTER}_{uuid.uuid4().int}", f"KarpenterNodeRole-{CLUSTER}", f"/karpenter/{REGION}/{CLUSTER}/{uuid.uuid4()}/"
        self.refused("NoSuchEntity", iam.get_instance_profile, InstanceProfileName=name)
        iam.create_instance_profile(InstanceProfileName=name, Path=path, Tags=[{"Key": "team", "Value": "web"}])
        self.refused("EntityAlreadyExists", iam.create_instance_profile, InstanceProfileName=name)
        missing = self.refused("NoSuchEntity", iam.add_role_to_instance_profile, InstanceProfileName=name, RoleName="nobody")
        self.assertIn("role", missing["Error"]["Message"])
        iam.add_role_to_instance_profile(InstanceProfileName=name, RoleName=role)
        found = iam.get_instance_profile(InstanceProfileName=name)["InstanceProfile"]
        self.assertEqual([role["RoleName"] for role in found["Roles"]], [role])
        self.assertEqual(found["Tags"], [{"Key": "team", "Value": "web"}])
        listed = iam.get_paginator("list_instance_profiles").paginate(PathPrefix=path)
        self.assertEqual([item["InstanceProfileName"] for page in listed for item in page["InstanceProfiles"]], [name])
        iam.tag_instance_profile(InstanceProfileName=name, Tags=[{"Key": "more", "Value": "x"}])
        self.refused("DeleteConflict", iam.delete_instance_profile, InstanceProfileName=name)
        iam.remove_role_from_instance_profile(InstanceProfileName=name, RoleName=role)
        iam.delete_instance_profile(InstanceProfileName=name)
        self.assertEqual(iam.get_role(RoleName=role)["Role"]["RoleName"], role)


class Queue(Case):
    def setUp(self):
        self.url = sqs.get_queue_url(QueueName=CLUSTER)["QueueUrl"]
        self.assertTrue(self.url.startswith(ENDPOINT), self.url)
        self.drain()

    def drain(self):
        while received := self.receive(0):
            for message in received:
                sqs.delete_message(QueueUrl=self.url, ReceiptHandle=message["ReceiptHandle"])

    def receive(self, wait):
        return sqs.receive_message(QueueUrl=self.url, MaxNumberOfMessages=10, VisibilityTimeout=20, WaitTimeSeconds=wait,
                                   AttributeNames=["SentTimestamp"], MessageAttributeNames=["All"]).get("Messages", [])

    def test_messages_come_with_their_time(self):
        sqs.send_message(QueueUrl=self.url, MessageBody="hello")
        # Instances of other tests may have news as well.
        message = next(message for message in self.receive(1) if message["Body"] == "hello")
        self.assertGreater(int(message["Attributes"]["SentTimestamp"]), 1_700_000_000_000)
        self.assertEqual([other for other in self.receive(0) if other["Body"] == "hello"], [])

    def test_a_missing_queue_is_told_in_both_ways(self):
        with self.assertRaises(sqs.exceptions.QueueDoesNotExist) as caught:
            sqs.get_queue_url(QueueName="nobody's")
        self.assertEqual(caught.exception.response["Error"]["Code"], "AWS.SimpleQueueService.NonExistentQueue")

    def test_interruptions_arrive_as_events(self):
        id = self.launched()
        kinds = {"spot": "EC2 Spot Instance Interruption Warning", "rebalance": "EC2 Instance Rebalance Recommendation",
                 "scheduled-change": "AWS Health Event"}
        seen = {}
        for kind in kinds:
            control("interruptions", {"kind": kind, "instance": id})
        control("interruptions", {"kind": "terminate", "instance": id})

        def complete():
            for message in self.receive(1):
                event = json.loads(message["Body"])
                seen.setdefault(event["detail-type"], []).append(event["detail"])
                sqs.delete_message(QueueUrl=self.url, ReceiptHandle=message["ReceiptHandle"])
            states = [detail["state"] for detail in seen.get("EC2 Instance State-change Notification", [])
                      if detail["instance-id"] == id]
            return set(kinds.values()) <= set(seen) and states[-1:] == ["terminated"]

        self.until(complete)
        self.assertEqual(seen[kinds["spot"]][0]["instance-id"], id)
        self.assertEqual(seen[kinds["scheduled-change"]][0]["affectedEntities"], [{"entityValue": id}])


class Others(Case):
    def test_the_cluster_and_the_caller_are_known(self):
        cluster = eks.describe_cluster(name=CLUSTER)["cluster"]
        self.assertTrue(cluster["endpoint"].startswith("https://"))
        self.assertEqual(cluster["kubernetesNetworkConfig"]["serviceIpv4Cidr"], "10.100.0.0/16")
        self.refused("ResourceNotFoundException", eks.describe_cluster, name="other")
        self.assertEqual(len(sts.get_caller_identity()["Account"]), 12)
        arn = cluster["arn"]
        self.assertEqual(shift.get_managed_resource(resourceIdentifier=arn)["zonalShifts"], [])
        control("zonal-shifts", {"zone": "usw2-az1", "seconds": 60})
        self.assertEqual(shift.get_managed_resource(resourceIdentifier=arn)["zonalShifts"][0]["awayFrom"], "usw2-az1")

    def test_calls_are_recorded_with_what_they_said(self):
        template = self.template(UserData=base64.b64encode(b"echo recorded").decode())
        calls = control("calls?service=ec2&action=CreateLaunchTemplate")
        call = next(call for call in calls if call["parameters"]["LaunchTemplateName"] == template)
        self.assertEqual(call["parameters"]["LaunchTemplateData"]["UserData"], "echo recorded")
        self.assertEqual((call["status"], call["error"]), (200, None))

    def test_faults_come_as_ordered(self):
        control("faults", {"action": "DescribePlacementGroups", "code": "InternalError", "status": 500, "times": 1})
        self.refused("InternalError", ec2.describe_placement_groups)
        ec2.describe_placement_groups()

    def test_throttling_follows_the_buckets(self):
        control("throttling", {"rates": {"DescribeAvailabilityZones": {"perSecond": 0.001, "burst": 2}}})
        ec2.describe_availability_zones()
        ec2.describe_availability_zones()
        answer = self.refused("RequestLimitExceeded", ec2.describe_availability_zones)
        self.assertEqual(answer["ResponseMetadata"]["HTTPStatusCode"], 503)


class Policies(Case):
    """A policy binds every caller, so these tests put it away again at once."""

    def under(self, *statements):
        control("policy", {"document": {"Version": "2012-10-17", "Statement": list(statements)}})
        self.addCleanup(control, "policy", {})

    def test_tags_decide(self):
        template, other = self.template(), self.launched()
        owned = {"StringEquals": {f"aws:RequestTag/kubernetes.io/cluster/{CLUSTER}": "owned"}}
        self.under(
            {"Effect": "Allow", "Action": "ec2:Describe*", "Resource": "*"},
            {"Effect": "Allow", "Action": ["ec2:CreateFleet", "ec2:RunInstances", "ec2:CreateTags"], "Resource": "*"},
            {"Effect": "Allow", "Action": "ec2:TerminateInstances", "Resource": f"arn:aws:ec2:{REGION}:*:instance/*",
             "Condition": {"StringLike": {"aws:ResourceTag/team": "*"}}},
            {"Effect": "Deny", "Action": "ec2:CreateTags", "Resource": "*",
             "Condition": {"ForAnyValue:StringEquals": {"aws:TagKeys": ["forbidden"]}}},
            {"Effect": "Allow", "Action": "ec2:CreateLaunchTemplate", "Resource": "*", "Condition": owned})
        self.fleet(template, [self.override()])
        answer = self.refused("UnauthorizedOperation", ec2.terminate_instances, InstanceIds=[other])
        self.assertEqual(answer["ResponseMetadata"]["HTTPStatusCode"], 403)
        ec2.create_tags(Resources=[other], Tags=[{"Key": "team", "Value": "web"}])
        ec2.terminate_instances(InstanceIds=[other])
        denied = self.refused("UnauthorizedOperation", ec2.create_tags, Resources=[other], Tags=[{"Key": "forbidden", "Value": ""}])
        self.assertIn("explicit deny", denied["Error"]["Message"])
        self.refused("UnauthorizedOperation", ec2.create_launch_template, LaunchTemplateName="untagged", LaunchTemplateData={"ImageId": "ami-1"})
        self.refused("AccessDenied", iam.list_instance_profiles)
        self.refused("AccessDeniedException", ssm.get_parameter, Name="/a")
        self.refused("AccessDeniedException", eks.describe_cluster, name=CLUSTER)


if __name__ == "__main__":
    unittest.main()
