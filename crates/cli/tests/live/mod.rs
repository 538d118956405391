//! A live cluster instead of files: an API server behind a socket, over the same kind of connection that kubectl makes.

use std::{
    ffi::OsStr,
    fs,
    path::Path,
    process::{Command, Output},
};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client, ResourceExt,
    api::{DynamicObject, Patch, PatchParams, PostParams},
    core::GroupVersionKind,
    discovery::ApiResource,
};
use kube_mem::{ApiServer, https::HttpsListener};
use serde_json::{Value, json};
use tempfile::TempDir;

/// An API server, and a folder with its kubeconfig.
pub struct Live {
    pub client: Client,
    folder: TempDir,
    _listener: HttpsListener,
}

impl Live {
    pub async fn start(definitions: &[CustomResourceDefinition]) -> Self {
        let server = ApiServer::builder().build();
        let client = server.client();
        let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
        for crd in definitions {
            crds.create(&PostParams::default(), crd)
                .await
                .expect("the CRD is accepted");
        }
        let listener = HttpsListener::bind(server, ([127, 0, 0, 1], 0).into())
            .await
            .expect("a socket");
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("kubeconfig"), listener.kubeconfig("live")).expect("a file");
        Self {
            client,
            folder,
            _listener: listener,
        }
    }

    /// Where the program is run.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub async fn apply(&self, object: Value) {
        let object: DynamicObject = serde_json::from_value(object).expect("an object");
        let types = object.types.clone().expect("its types");
        let resource = ApiResource::from_gvk(&GroupVersionKind::try_from(&types).expect("a kind"));
        let api: Api<DynamicObject> = match object.namespace() {
            Some(namespace) => Api::namespaced_with(self.client.clone(), &namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        };
        let name = object.name_any();
        let params = PatchParams::apply("test").force();
        api.patch(&name, &params, &Patch::Apply(&object))
            .await
            .expect("the object is accepted");
        if object.data.get("status").is_some() {
            let status = json!({"status": object.data["status"]});
            let patched = api
                .patch_status(&name, &PatchParams::default(), &Patch::Merge(&status))
                .await;
            patched.expect("the status is accepted");
        }
    }

    /// The program runs beside the server, so that neither waits for the other.
    pub async fn run(&self, arguments: &[&str]) -> Output {
        self.run_with(arguments, &[]).await
    }

    /// With variables in its environment.
    pub async fn run_with(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
        let mut program = karpenter(self.folder(), arguments);
        program.envs(variables.iter().copied());
        let run = tokio::task::spawn_blocking(move || program.output().expect("the program runs"));
        run.await.expect("the program ends")
    }
}

/// The program in a folder, with no cluster but those that its arguments name.
pub fn karpenter<A: AsRef<OsStr>>(folder: &Path, arguments: &[A]) -> Command {
    let mut program = Command::new(env!("CARGO_BIN_EXE_karpenter"));
    program.args(arguments).current_dir(folder).env_remove("KUBECONFIG");
    program
}
